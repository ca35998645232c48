"""The public names of fairpass and where each of them lives; see `lazy_loader.attach_stub`."""

from .datasets import describe as describe
from .datasets import find_bias as find_bias
from .datasets import from_tables as from_tables
from .datasets import join as join
from .datasets import join_tables as join_tables
from .datasets import load as load
from .datasets import synthetic as synthetic
from .datasets.graph_gain import graph_gain as graph_gain
from .methods import EDITS as EDITS
from .methods import FMP as FMP
from .methods import GAT as GAT
from .methods import GCN as GCN
from .methods import GIN as GIN
from .methods import GMMD as GMMD
from .methods import GMMDS as GMMDS
from .methods import MMD as MMD
from .methods import NIFTY as NIFTY
from .methods import SAGE as SAGE
from .methods import BeMap as BeMap
from .methods import Constant as Constant
from .methods import ExponentiatedGradient as ExponentiatedGradient
from .methods import FairDrop as FairDrop
from .methods import FairGB as FairGB
from .methods import FairGNN as FairGNN
from .methods import FairINV as FairINV
from .methods import FairSIN as FairSIN
from .methods import FairVGNN as FairVGNN
from .methods import Logistic as Logistic
from .methods import MLPClassifier as MLPClassifier
from .methods import NodeClassifier as NodeClassifier
from .methods import Thresholds as Thresholds
from .methods import load_model as load_model
from .metrics import Evaluation as Evaluation
from .metrics import best_threshold as best_threshold
from .metrics import evaluate as evaluate
from .nn import GMMDPropagation as GMMDPropagation
from .nn import GMMDSPropagation as GMMDSPropagation
from .report import Evidence as Evidence
from .report import collect as collect
from .report import write_report as write_report
from .runs import fit_all as fit_all
from .training import Training as Training
from .tuning import tune as tune

__all__: list[str]
__version__: str
