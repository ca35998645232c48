from .collect import collect as collect
from .evidence import Evidence as Evidence
from .evidence import find_evidence as find_evidence
from .model_card import write_model_card as write_model_card
from .page import write_report as write_report
