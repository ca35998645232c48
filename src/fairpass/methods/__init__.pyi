"""The public names of `fairpass.methods` and where each of them lives; see `lazy_loader.attach_stub`."""

from .base import NodeClassifier as NodeClassifier
from .bemap import BeMap as BeMap
from .closed_form import Constant as Constant
from .closed_form import ExponentiatedGradient as ExponentiatedGradient
from .closed_form import Logistic as Logistic
from .edits import EDITS as EDITS
from .fairdrop import FairDrop as FairDrop
from .fairgb import FairGB as FairGB
from .fairgnn import FairGNN as FairGNN
from .fairinv import FairINV as FairINV
from .fairsin import FairSIN as FairSIN
from .fairvgnn import FairVGNN as FairVGNN
from .fmp import FMP as FMP
from .gmmd import GMMD as GMMD
from .gmmd import GMMDS as GMMDS
from .mmd import MMD as MMD
from .nifty import NIFTY as NIFTY
from .plain import GAT as GAT
from .plain import GCN as GCN
from .plain import GIN as GIN
from .plain import SAGE as SAGE
from .plain import MLPClassifier as MLPClassifier
from .plain import Thresholds as Thresholds
from .registry import load_model as load_model
from .registry import method as method
from .registry import names as names
