"""The claims of the paper, each with a sentence whether the records show it."""

from collections.abc import Callable, Iterator, Mapping

from fairpass.experiments.claims import comparisons, measured, sweeps
from fairpass.experiments.claims.claim import Check, Claim
from fairpass.experiments.findings import Findings

__all__ = ["Check", "Claim", "claims_of"]

_CLAIMS: Mapping[str, Callable[[Findings], Iterator[Claim]]] = {
    "stats": measured.stats,
    "main": comparisons.main,
    "backbones": comparisons.backbones,
    "ablation": comparisons.ablation,
    "hyper": sweeps.hyper,
    "layers": sweeps.layers,
    "theory": measured.theory,
    "alpha": sweeps.alpha,
    "mlp": sweeps.mlp,
    "cases": measured.cases,
    "runtime": measured.runtime,
}


def claims_of(item: str, findings: Findings) -> list[Claim]:
    """Return what the paper claims on an item; nothing on those that it does not have."""
    return list(_CLAIMS[item](findings)) if item in _CLAIMS else []
