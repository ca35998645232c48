"""The public names of `fairpass.methods` and where each of them lives; see `lazy_loader.attach_stub`."""

from .base import NodeClassifier as NodeClassifier
from .constant import Constant as Constant
from .edits import EDITS as EDITS
from .exponentiated_gradient import ExponentiatedGradient as ExponentiatedGradient
from .fairgnn import FairGNN as FairGNN
from .fairvgnn import FairVGNN as FairVGNN
from .fmp import FMP as FMP
from .gmmd import GMMD as GMMD
from .gmmd import GMMDS as GMMDS
from .gnn import GAT as GAT
from .gnn import GCN as GCN
from .gnn import GIN as GIN
from .gnn import SAGE as SAGE
from .gnn import MLPClassifier as MLPClassifier
from .logistic import Logistic as Logistic
from .mmd import MMD as MMD
from .nifty import NIFTY as NIFTY
from .registry import load_model as load_model
from .registry import method as method
from .registry import names as names
from .thresholds import Thresholds as Thresholds
