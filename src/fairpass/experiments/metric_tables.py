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


def metric_tables(
    found: ItemResults,
    label: str = "method",
    *,
    printed: Callable[[Cell], PrintedRow | None] = lambda _: None,
    group: Callable[[Cell], Hashable] = lambda _: 0,
) -> list[Table]:
    """Return a table for each data set: the five metrics of every cell, the balanced accuracy and the average rank.

    Args:
        found: the results.
        label: what the labels are.
        printed: the paper's values of a cell.
        group: cells are compared within their group; None stands for no comparison.
    """
    tables, columns = [], (*found.cells[0].at, label)
    for dataset in found.datasets().values():
        pairs = [pair for pair in zip(found.cells, found.results, strict=True) if pair[0].dataset == dataset]
        results, groups = [result for _, result in pairs], [group(cell) for cell, _ in pairs]
        ranked = [result if its_group is not None else None for result, its_group in zip(results, groups, strict=True)]
        papers = [printed(cell) for cell, _ in pairs]
        marks = [_NEAR_CONSTANT if result and result.is_near_constant else "" for result in ranked]
        words = [
            (*map(_text, cell.at.values()), cell.label + mark) for (cell, _), mark in zip(pairs, marks, strict=True)
        ]
        content: dict[str, Sequence[str | Entry]] = dict(zip(columns, zip(*words, strict=True), strict=True))
        for metric in METRICS:
            symbol, upwards = BY_LABEL[metric].symbol, BY_LABEL[metric].higher_is_better
            entries = _column(results, metric)
            content[f"{symbol} {'↑' if upwards else '↓'}"] = emphasised(entries, lowest=not upwards, groups=groups)
            if any(papers):
                content[f"{symbol}{PAPER}"] = [number(row[metric][0] if row else None) for row in papers]
        content["BACC ↑"] = emphasised(_column(results, "balanced_accuracy"), lowest=False, groups=groups)
        content["rank"] = emphasised(_ranks(ranked, groups), lowest=True, groups=groups)
        legend = _legend([result for result in ranked if result])
        tables.append(table(found.item.name, content, dataset=dataset, legend=legend, words=len(columns)))
    return tables


def _text(position: object) -> str:
    return position if isinstance(position, str) else f"{position:g}"


def _column(results: Iterable[CellResult | None], metric: str) -> list[Entry]:
    return [number(result.mean(metric), std=result.std(metric)) if result else number(None) for result in results]


def _ranks(results: Sequence[CellResult | None], groups: Sequence[Hashable]) -> list[Entry]:
    """Return the average rank of each result in its group."""
    rows = {i: result.means for i, result in enumerate(results) if result}
    defined = {i: row for i, row in rows.items() if not any(map(math.isnan, row.values()))}
    ranks = average_ranks({i: row for i, row in defined.items() if groups[i] == group} for group in set(groups))
    return [number(ranks.get(i)) for i in range(len(results))]


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
