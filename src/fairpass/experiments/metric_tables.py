"""The kind of table that most items have: the five metrics of some cells, with the paper's values beside ours."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence

from fairpass.experiments.cells import METRICS, Cell, CellResult, average_ranks
from fairpass.experiments.item import ItemResults
from fairpass.experiments.paper import PrintedRow
from fairpass.experiments.tables import MISSING, PAPER, Entry, Table, emphasised, number, table
from fairpass.experiments.texts import span
from fairpass.metrics.catalog import BY_LABEL

_NEAR_CONSTANT = "†"
# The records' name of balanced accuracy.
_BALANCED = "balanced_accuracy"


def metric_tables(
    found: ItemResults,
    columns: Sequence[str],
    *,
    printed: Callable[[Cell], PrintedRow | None] = lambda _: None,
    group: Callable[[Cell], Hashable] = lambda _: 0,
) -> list[Table]:
    """Return a table for each data set: the five metrics of every cell, the balanced accuracy and the average rank.

    Args:
        found: the results.
        columns: names of the first columns, which hold the cells' positions and, last, their labels.
        printed: the paper's values of a cell.
        group: cells are compared within their group; None stands for no comparison.
    """
    return [_table(found, dataset, columns, printed, group) for dataset in found.datasets()]


def _table(
    found: ItemResults,
    dataset: str,
    columns: Sequence[str],
    printed: Callable[[Cell], PrintedRow | None],
    group: Callable[[Cell], Hashable],
) -> Table:
    pairs = [pair for pair in zip(found.cells, found.results, strict=True) if pair[0].dataset == dataset]
    results, groups = [result for _, result in pairs], [group(cell) for cell, _ in pairs]
    papers = [printed(cell) for cell, _ in pairs]
    ranked = [result for result, its_group in zip(results, groups, strict=True) if result and its_group is not None]
    words = [(*map(_text, cell.at.values()), cell.label + _mark(result, ranked)) for cell, result in pairs]
    content: dict[str, Sequence[str | Entry]] = dict(zip(columns, zip(*words, strict=True), strict=True))
    for metric in METRICS:
        symbol, upwards = BY_LABEL[metric].symbol, BY_LABEL[metric].higher_is_better
        content[f"{symbol} {'↑' if upwards else '↓'}"] = _column(results, metric, groups, lowest=not upwards)
        if any(papers):
            content[f"{symbol}{PAPER}"] = [number(row[metric][0] if row else None) for row in papers]
    content["BACC ↑"] = _column(results, _BALANCED, groups, lowest=False)
    content["rank"] = _ranks(results, groups)
    return table(found.item.name, content, dataset=dataset, legend=_legend(ranked), words=len(columns))


def _text(position: object) -> str:
    return position if isinstance(position, str) else f"{position:g}"


def _mark(result: CellResult | None, ranked: Sequence[CellResult]) -> str:
    return _NEAR_CONSTANT if result in ranked and result.is_near_constant else ""


def _column(
    results: Iterable[CellResult | None], metric: str, groups: Sequence[Hashable], *, lowest: bool
) -> list[Entry]:
    entries = [number(result.mean(metric), std=result.std(metric)) if result else number(None) for result in results]
    return emphasised(entries, lowest=lowest, groups=groups)


def _ranks(results: Sequence[CellResult | None], groups: Sequence[Hashable]) -> list[Entry]:
    tables: dict[Hashable, dict[int, dict[str, float]]] = {group: {} for group in groups if group is not None}
    for i, (result, group) in enumerate(zip(results, groups, strict=True)):
        if result and group is not None and not any(map(math.isnan, result.means.values())):
            tables[group][i] = result.means
    ranks = average_ranks(tables.values())
    return emphasised([number(ranks.get(i)) for i in range(len(results))], lowest=True, groups=groups)


def seeds_in_words(results: Iterable[CellResult]) -> str:
    """Return how many seeds the results have."""
    count = span(len(result.records) for result in results)
    return "one seed" if count == "1" else f"{count} seeds"


def _legend(ranked: Sequence[CellResult]) -> list[str]:
    if not ranked:
        return [f"{MISSING}: not run."]
    notes = [
        f"On the test nodes, in percent, over {seeds_in_words(ranked)}. Bold: the best; italics (underlined in LaTeX): "
        "the second best; BACC: balanced accuracy; rank: the average place over the other five metrics."
    ]
    if any(result.is_near_constant for result in ranked):
        notes.append(f"{_NEAR_CONSTANT} near constant: most runs predict nearly the same for all nodes.")
    return notes
