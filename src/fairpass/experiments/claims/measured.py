"""What the paper claims of the data, the theory, the case study and the time."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.stats import rankdata

from fairpass.experiments.claims.claim import Check, Claim, claim
from fairpass.experiments.findings import TITLES, Finding, Findings
from fairpass.experiments.paper import OURS
from fairpass.experiments.tables.main import PAPERS
from fairpass.experiments.tables.measured import epoch_seconds


def stats(findings: Findings) -> Iterator[Claim]:
    """Return the claim on the data sets."""
    checks = []
    for finding in findings.of("stats"):
        mixing = finding.measured["statistics"]["sensitive_mixing"]
        numbers = f"{mixing['homophily']:.2f}, at random {mixing['expected']:.2f}"
        checks.append(Check(TITLES[finding.cell.dataset], mixing["homophily"] > mixing["expected"], numbers))
    yield claim("Edges join nodes of the same group more often than at random.", checks)


def theory(findings: Findings) -> Iterator[Claim]:
    """Return the claims on both theorems."""
    fair = [finding for finding in findings.of("theory") if finding.cell.label in OURS]
    yield claim(
        "In training, ΔDP falls as the similarity between the groups rises (rank correlation over the epochs).",
        map(_opposed, fair),
    )
    yield claim("At first accuracy and bias rise, and then bias falls.", map(_rises_and_falls, fair))
    for name in ("4.1", "4.2"):
        yield claim(
            f"The bound of Theorem {name} holds.",
            (
                _bound(finding, name)
                for finding in findings.of("theory")
                if name == "4.1" or finding.cell.label == "GMMD"
            ),
        )


def _where(finding: Finding) -> str:
    return f"{TITLES[finding.cell.dataset]}, {finding.cell.label}"


def _opposed(finding: Finding) -> Check | None:
    curves = finding.measured["curves"]
    pairs = [
        (bias, similar)
        for bias, similar in zip(curves["DP"], curves.get("similarity", []), strict=False)
        if bias is not None and similar is not None
    ]
    ranks = np.array([rankdata(column) for column in zip(*pairs, strict=True)])
    # Of what does not change there is no correlation.
    if len(pairs) < 2 or (ranks.std(axis=1) == 0).any():
        return None
    correlation = float(np.corrcoef(ranks)[0, 1])
    return Check(_where(finding), correlation < 0, f"{correlation:.2f}")


def _rises_and_falls(finding: Finding) -> Check | None:
    curves = finding.measured["curves"]
    accuracy, bias = ([x for x in curves[name] if x is not None] for name in ("ACC", "DP"))
    if len(bias) < 3:
        return None
    peak = int(np.argmax(bias))
    holds = accuracy[-1] > accuracy[0] and bias[0] < bias[peak] and bias[-1] < bias[peak] / 2
    numbers = f"ACC {100 * accuracy[0]:.1f} to {100 * accuracy[-1]:.1f}"
    return Check(
        _where(finding),
        holds,
        f"{numbers}, ΔDP {100 * bias[0]:.1f}, {100 * bias[peak]:.1f} at most, {100 * bias[-1]:.1f} at last",
    )


def _bound(finding: Finding, name: str) -> Check:
    found = finding.measured["theorems"][name]
    return Check(_where(finding), bool(found["holds"]), f"{found['measured']:.3g} ≤ {found['bound']:.3g}")


def cases(findings: Findings) -> Iterator[Claim]:
    """Return the claims of the case study."""
    fair = [finding for finding in findings.of("cases") if finding.cell.label in OURS]
    yield claim("Pairs of nodes of different groups are more similar if they have the same label.", map(_similar, fair))
    yield claim(
        "Among a node's neighbours of the other group, those of its label are more similar to it.",
        (check for finding in fair for check in _neighbours(finding)),
    )


def _similar(finding: Finding) -> Check | None:
    found = finding.measured["cases"]
    same, different = (found[name]["mean"] for name in ("same label", "different label"))
    if same is None or different is None:
        return None
    return Check(_where(finding), same > different, f"{same:.3f} against {different:.3f}")


def _neighbours(finding: Finding) -> Iterator[Check]:
    for picture in finding.measured["cases"]["neighbourhoods"]:
        same, different = (_mean_similarity(picture, same_label=same) for same in (True, False))
        if same is not None and different is not None:
            where = f"{_where(finding)}, label {picture['centre']['label']}"
            yield Check(where, same > different, f"{same:.2f} against {different:.2f}")


def _mean_similarity(picture: Mapping[str, Any], *, same_label: bool) -> float | None:
    centre = picture["centre"]
    values = [
        node["similarity"]
        for node in picture["neighbours"]
        if node["group"] != centre["group"] and (node["label"] == centre["label"]) == same_label
    ]
    return float(np.mean(values)) if values else None


def runtime(findings: Findings) -> Iterator[Claim]:
    """Return the claims on time, of the paper's variant and of ours."""
    for suffix, variant in (("", "as we recommend it"), (PAPERS, "as the paper defines it")):
        yield claim(
            f"An epoch of GMMD, {variant}, is faster than one of NIFTY, FairGNN, EDITS and FairVGNN.",
            (_faster(findings, d, f"GMMD{suffix}") for d in findings.datasets("runtime")),
        )
        yield claim(
            f"An epoch of GMMD-S, {variant}, is faster than one of GMMD.",
            (_simpler(findings, d, suffix) for d in findings.datasets("runtime")),
        )


def _faster(findings: Findings, dataset: str, name: str) -> Check | None:
    ours = epoch_seconds(findings, dataset, name)
    others = {label: epoch_seconds(findings, dataset, label) for label in ("NIFTY", "FairGNN", "EDITS", "FairVGNN")}
    found = {label: time for label, time in others.items() if time is not None}
    if ours is None or not found:
        return None
    words = ", ".join(f"{label} {1000 * time:.3g}" for label, time in found.items())
    return Check(TITLES[dataset], ours < min(found.values()), f"{1000 * ours:.3g} ms; {words}")


def _simpler(findings: Findings, dataset: str, suffix: str) -> Check | None:
    full, simple = (epoch_seconds(findings, dataset, f"{name}{suffix}") for name in OURS)
    if full is None or simple is None:
        return None
    return Check(TITLES[dataset], simple < full, f"{1000 * simple:.3g} ms against {1000 * full:.3g} ms")
