"""Conclusions with confidence: who is dominated, whether the edges help, what a split is too small to show."""

from fairpass.experiments.benchmark.results import BenchmarkResults, front, validation_score
from fairpass.experiments.inference import Interval, is_dominated, mean_interval

WITH_EDGES, WITHOUT_EDGES = ("gcn", "sage", "gin", "gat"), ("logistic", "mlp")


def undominated(found: BenchmarkResults, graph: str, bias: str) -> tuple[dict[str, bool], dict[str, list[str]]]:
    """Return the rows that no other dominates in accuracy and a bias, and the others with those that dominate them.

    Settings are chosen on validation by accuracy minus this bias. A row is dominated if another is better in both with
    95 % confidence over the splits. Of the undominated ones it says whether they are on the front of the means.
    Near-constant rows do not take part.
    """
    tables = {label: each for label, each in found.by_split(graph, bias).items() if each["near_constant"].mean() <= 0.5}
    better = {"ACC": True, bias: False}
    beaten: dict[str, list[str]] = {}
    for label, own in tables.items():
        rivals = [other for other, each in tables.items() if other != label and is_dominated(each, own, better=better)]
        if rivals:
            beaten[label] = rivals
    points = {label: (each["ACC"].mean(), each[bias].mean()) for label, each in tables.items()}
    best = front(list(points.values()))
    return {label: points[label] in best for label in tables if label not in beaten}, beaten


def graph_gain(found: BenchmarkResults, graph: str) -> Interval | None:
    """Return how much more accurate the best plain network with edges is than the best without, over the splits.

    Which is best is decided on validation, for each split, by accuracy alone.
    """
    gains = []
    entries = {entry.label: entry for entry in found.protocol.entries}
    for split in range(found.protocol.splits[graph]):
        best = []
        for labels in (WITH_EDGES, WITHOUT_EDGES):
            chosen = [found.chosen(graph, entries[label], split, "ACC") for label in labels if label in entries]
            made = [each for each in chosen if each is not None]
            if made:
                best.append(max(made, key=lambda each: validation_score(each, "ACC")).test("ACC"))
        if len(best) == 2:
            gains.append(best[0] - best[1])
    return mean_interval(gains) if gains else None
