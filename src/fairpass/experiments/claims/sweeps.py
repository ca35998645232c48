"""What the paper claims of its parameters."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from fairpass.experiments.claims.claim import CLOSE, Check, Claim, bias, claim, utility
from fairpass.experiments.findings import TITLES, Findings

Line = Mapping[Any, Mapping[str, float]]
"""The five metrics along a parameter."""

_SMALLEST_LINE = 3


def hyper(findings: Findings) -> Iterator[Claim]:
    """Return the claims on the weights of smoothness and of fairness."""
    lines = {d: _averaged(findings, d, "lambda_s") for d in findings.datasets("hyper")}
    yield claim(
        "On German, too much or too little smoothing costs accuracy: the best λs is neither the least nor the most.",
        [_best_inside("German", lines.get("german", {}), lambda row: row["ACC"], "λs")],
    )
    yield claim(
        "On Bail, accuracy rises with λs and stays.",
        [_ends("Bail", lines.get("bail", {}), "ACC", rises=True)],
    )
    yield claim(
        "ΔDP falls with λs on Bail, where edges cross between groups, and rises on German, where they do not.",
        [
            _ends("Bail", lines.get("bail", {}), "DP", rises=False),
            _ends("German", lines.get("german", {}), "DP", rises=True),
        ],
    )
    yield claim(
        "λs from 0.5 to 1 is more accurate than 0.1.",
        (_middle(TITLES[d], line) for d, line in lines.items()),
    )
    yield claim(
        "A larger weight of fairness lowers ΔDP.",
        (_ends(TITLES[d], _averaged(findings, d, "weight"), "DP", rises=False) for d in lines),
    )


def _averaged(findings: Findings, dataset: str, axis: str) -> Line:
    """Return the metrics along one axis of the grid, averaged over the other."""
    found: dict[Any, list[dict[str, float]]] = {}
    for finding in findings.of("hyper", dataset):
        found.setdefault(finding.cell.at[axis], []).append(finding.means)
    return {x: {m: fmean(row[m] for row in rows) for m in rows[0]} for x, rows in sorted(found.items())}


def _ends(where: str, line: Line, metric: str, *, rises: bool) -> Check | None:
    if len(line) < 2:
        return None
    first, last = (line[x][metric] for x in (min(line), max(line)))
    numbers = f"{metric.replace('DP', 'ΔDP')} {first:.1f} at {min(line):g}, {last:.1f} at {max(line):g}"
    # As printed: what differs by less is the same.
    change = round(last, 1) - round(first, 1)
    return Check(where, change > 0 if rises else change < 0, numbers)


def _middle(where: str, line: Line) -> Check | None:
    if not {0.1, 0.5, 1.0} <= set(line):
        return None
    middle, little = fmean(line[x]["ACC"] for x in (0.5, 1.0)), line[0.1]["ACC"]
    return Check(where, middle > little, f"ACC {middle:.1f} against {little:.1f}")


def layers(findings: Findings) -> Iterator[Claim]:
    """Return the claims on the number of layers."""
    lines = _lines(findings, "layers", "K")
    yield claim(
        "Utility first rises and then falls with the number of layers.",
        (_best_inside(where, line, utility, "K") for where, line in lines.items()),
    )
    yield claim("Bias falls with the number of layers.", (_falls(*item) for item in lines.items()))
    yield claim(
        "Two to four layers are enough: no other number is more than a point better in utility minus bias.",
        (_enough(where, line, (2, 3, 4), _worth, "K") for where, line in lines.items()),
    )


def alpha(findings: Findings) -> Iterator[Claim]:
    """Return the claims on the width of the kernel."""
    lines = _lines(findings, "alpha", "alpha")
    yield claim(
        f"α has little influence on accuracy: at most {CLOSE:g} point between the best and the worst.",
        (_flat(*item) for item in lines.items()),
    )
    yield claim("A larger α (0.7 or more) is less biased.", (_wide(*item) for item in lines.items()))


def mlp(findings: Findings) -> Iterator[Claim]:
    """Return the claims on the depth of the perceptron."""
    lines = _lines(findings, "mlp", "num_layers")
    yield claim(
        "Accuracy first rises and then falls with the depth of the perceptron.",
        (_best_inside(where, line, lambda row: row["ACC"], "M") for where, line in lines.items()),
    )
    yield claim(
        "Two or four layers are enough for fairness: no other depth is more than a point less biased.",
        (_enough(where, line, (2, 4), lambda row: -bias(row), "M") for where, line in lines.items()),
    )


def _lines(findings: Findings, item: str, axis: str) -> dict[str, Line]:
    return {
        f"{TITLES[dataset]}, {label}": {f.cell.at[axis]: f.means for f in findings.of(item, dataset, label)}
        for dataset in findings.datasets(item)
        for label in findings.labels(item, dataset)
    }


def _worth(row: Mapping[str, float]) -> float:
    return utility(row) - bias(row)


def _best_inside(where: str, line: Line, value: Callable[[Mapping[str, float]], float], axis: str) -> Check | None:
    if len(line) < _SMALLEST_LINE:
        return None
    best = max(line, key=lambda x: value(line[x]))
    return Check(where, min(line) < best < max(line), f"best {value(line[best]):.1f} at {axis} = {best:g}")


def _falls(where: str, line: Line) -> Check | None:
    values = [bias(line[x]) for x in sorted(line)]
    if len(values) < 2:
        return None
    falling = sum(after < before for before, after in pairwise(values))
    steps = len(values) - 1
    numbers = f"{values[0]:.1f} to {values[-1]:.1f}, falling in {falling} of {steps} steps"
    return Check(where, values[-1] < values[0] and 2 * falling > steps, numbers)


def _enough(
    where: str, line: Line, few: Sequence[int], value: Callable[[Mapping[str, float]], float], axis: str
) -> Check | None:
    inside = {x: value(row) for x, row in line.items() if x in few}
    outside = {x: value(row) for x, row in line.items() if x not in few}
    if not inside or not outside:
        return None
    best, other = max(inside, key=inside.__getitem__), max(outside, key=outside.__getitem__)
    numbers = f"{abs(inside[best]):.1f} at {axis} = {best:g}, {abs(outside[other]):.1f} at {other:g}"
    return Check(where, outside[other] <= inside[best] + CLOSE, numbers)


def _flat(where: str, line: Line) -> Check | None:
    values = [row["ACC"] for row in line.values()]
    if len(values) < 2:
        return None
    return Check(where, max(values) - min(values) <= CLOSE, f"{min(values):.1f} to {max(values):.1f}")


def _wide(where: str, line: Line) -> Check | None:
    small, large = ([bias(row) for x, row in line.items() if (x >= 0.7) == is_large] for is_large in (False, True))
    if not small or not large:
        return None
    return Check(where, fmean(large) < fmean(small), f"{fmean(large):.1f} against {fmean(small):.1f}")
