"""What the paper claims of its methods beside others, and of their parts."""

from collections.abc import Iterable, Iterator

from fairpass.experiments.claims.claim import CLOSE, Check, Claim, balance, bias, claim, utility
from fairpass.experiments.findings import TITLES, Findings
from fairpass.experiments.paper import OURS
from fairpass.experiments.ranks import METRICS, Means, average_ranks, is_better
from fairpass.experiments.tables.main import PAPERS, is_not_papers, is_not_recommended, main_ranks

# The rows of a variant of GMMD, and what it is called.
_VARIANTS = {"": "as we recommend it", PAPERS: "as the paper defines it"}
_RIVALS = ("FairGNN", "FairVGNN", "EDITS", "NIFTY", "FMP")


def main(findings: Findings) -> Iterator[Claim]:
    """Return the claims on the main table, each for both variants of GMMD."""
    yield claim("GMMD and GMMD-S have the best average ranks of all methods.", map(_ranks, [findings] * 2, _VARIANTS))
    tables = {dataset: findings.means("main", dataset) for dataset in findings.datasets("main")}
    for suffix, variant in _VARIANTS.items():
        gmmd, simple = (f"{name}{suffix}" for name in OURS)
        yield claim(
            f"GMMD, {variant}, is better than each of the fair methods in most cells.",
            (_wins(list(tables.values()), gmmd, rival) for rival in _RIVALS),
        )
        yield claim(
            f"GMMD, {variant}, lowers both ΔDP and ΔEO of a GCN, at a cost of at most {CLOSE:g} point of utility.",
            (_against_plain(dataset, table, gmmd) for dataset, table in tables.items()),
        )
        yield claim(
            f"GMMD-S, {variant}, is comparable with GMMD or better.",
            (_no_worse(TITLES[dataset], table, simple, gmmd) for dataset, table in tables.items()),
        )


def _ranks(findings: Findings, suffix: str) -> Check | None:
    ranks = main_ranks(findings, is_not_recommended if suffix else is_not_papers)
    ours = {name: ranks.pop(f"{name}{suffix}", None) for name in OURS}
    numbers = [rank for rank in ours.values() if rank is not None]
    if len(numbers) < len(OURS) or not ranks:
        return None
    best = min(ranks, key=lambda name: ranks[name])
    words = " and ".join(f"{name} {rank:.2f}" for name, rank in ours.items())
    return Check(
        _VARIANTS[suffix], max(numbers) < ranks[best], f"{words}, the best other method, {best}, {ranks[best]:.2f}"
    )


def _wins(tables: Iterable[Means], name: str, rival: str) -> Check | None:
    pairs = [(table[name], table[rival]) for table in tables if name in table and rival in table]
    cells = [is_better(ours[metric], theirs[metric], metric) for ours, theirs in pairs for metric in METRICS]
    return Check(rival, 2 * sum(cells) > len(cells), f"{sum(cells)} of {len(cells)} cells") if cells else None


def _against_plain(dataset: str, table: Means, name: str) -> Check | None:
    if not {name, "GCN"} <= set(table):
        return None
    ours, plain = table[name], table["GCN"]
    lost = utility(plain) - utility(ours)
    words = ", ".join(f"Δ{metric} {ours[metric]:.1f} against {plain[metric]:.1f}" for metric in ("DP", "EO"))
    is_fairer = all(is_better(ours[metric], plain[metric], metric) for metric in ("DP", "EO"))
    change = f"{abs(lost):.1f} points {'less' if lost > 0 else 'more'} utility"
    return Check(TITLES[dataset], is_fairer and lost <= CLOSE, f"{words}, {change}")


def _no_worse(where: str, table: Means, name: str, other: str) -> Check | None:
    if not {name, other} <= set(table):
        return None
    ours, theirs = table[name], table[other]
    holds = utility(ours) >= utility(theirs) - CLOSE and bias(ours) <= bias(theirs) + CLOSE
    return Check(where, holds, f"{balance(ours)} against {balance(theirs)}")


def backbones(findings: Findings) -> Iterator[Claim]:
    """Return the claim on other backbones."""
    checks = []
    for dataset in findings.datasets("backbones"):
        for backbone in findings.positions("backbones", "backbone"):
            table = findings.means("backbones", dataset, backbone=backbone)
            cells = [
                is_better(table[name][metric], table["FairVGNN"][metric], metric)
                for name in OURS
                if name in table and "FairVGNN" in table
                for metric in METRICS
            ]
            if cells:
                where = f"{TITLES[dataset]}, {backbone}"
                checks.append(Check(where, 2 * sum(cells) > len(cells), f"{sum(cells)} of {len(cells)} cells"))
    yield claim("On GIN and GAT, GMMD and GMMD-S are better than FairVGNN in most cells.", checks)


def ablation(findings: Findings) -> Iterator[Claim]:
    """Return the claims on what the parts of GMMD do, for both variants of it."""
    tables = {
        (TITLES[dataset], variant): findings.means("ablation", dataset, labels)
        for dataset in findings.datasets("ablation")
        for variant, labels in (
            ("recommended", ("full", "w/o smooth", "w/o fair", "w/o both", "sampled")),
            (
                "paper's",
                tuple(f"paper's, {part}" for part in ("full", "w/o smooth", "w/o fair", "w/o both", "w/o sample")),
            ),
        )
    }
    shortened = {key: {_part(label): row for label, row in table.items()} for key, table in tables.items()}
    yield claim(
        "Smoothing alone (w/o fair) is as useful as the full model, and more biased.",
        (_smoothing(*item) for item in shortened.items()),
    )
    yield claim(
        "Fairness alone (w/o smooth) is less biased than smoothing alone, and less useful than the full model.",
        (_fairness(*item) for item in shortened.items()),
    )
    yield claim(
        "The full model has the best average rank among those with parts left out.",
        (_full(*item) for item in shortened.items()),
    )
    yield claim(
        "Sampling nodes is comparable with using all of them.",
        (_sampling(*item) for item in shortened.items()),
    )


def _part(label: str) -> str:
    return label.removeprefix("paper's, ")


def _where(key: tuple[str, str]) -> str:
    return f"{key[0]}, {key[1]}"


def _smoothing(key: tuple[str, str], table: Means) -> Check | None:
    if not {"full", "w/o fair"} <= set(table):
        return None
    full, alone = table["full"], table["w/o fair"]
    holds = utility(alone) >= utility(full) - CLOSE and bias(alone) > bias(full)
    return Check(_where(key), holds, f"{balance(alone)} against {balance(full)}")


def _fairness(key: tuple[str, str], table: Means) -> Check | None:
    if not {"full", "w/o fair", "w/o smooth"} <= set(table):
        return None
    alone = table["w/o smooth"]
    holds = bias(alone) < bias(table["w/o fair"]) and utility(alone) < utility(table["full"])
    numbers = (
        f"{balance(alone)}; bias w/o fair {bias(table['w/o fair']):.1f}, full utility {utility(table['full']):.1f}"
    )
    return Check(_where(key), holds, numbers)


def _full(key: tuple[str, str], table: Means) -> Check | None:
    parts = {label: row for label, row in table.items() if label in ("full", "w/o smooth", "w/o fair", "w/o both")}
    if "full" not in parts or len(parts) < 2:
        return None
    ranks = average_ranks([parts])
    words = ", ".join(f"{label} {rank:.1f}" for label, rank in ranks.items())
    return Check(_where(key), ranks["full"] == min(ranks.values()), words)


def _sampling(key: tuple[str, str], table: Means) -> Check | None:
    sampled, everything = ("sampled", "full") if "sampled" in table else ("full", "w/o sample")
    if not {sampled, everything} <= set(table):
        return None
    ours, theirs = table[sampled], table[everything]
    holds = max(abs(utility(ours) - utility(theirs)), abs(bias(ours) - bias(theirs))) <= CLOSE
    return Check(_where(key), holds, f"{balance(ours)} against {balance(theirs)}")
