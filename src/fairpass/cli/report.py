"""`fairpass report`: what was found before, as one page to hand over."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairpass.cli.output import JsonFlag, examples, print_json, print_line, working

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch_geometric.data import Data

    from fairpass.methods import NodeClassifier

EXAMPLES = examples(
    {
        "Make evidence, then the page": (
            "fairpass compare german --methods gcn,gmmd --report runs/german\n"
            "fairpass report runs/german --out german.html"
        ),
        "Several audits on one page": "fairpass report runs/german runs/credit --out audits.html",
    }
)

PAGE = "report.html"


def report(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="A directory with evidence.json, or above several, or the file itself."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path(PAGE),
    as_json: JsonFlag = False,
) -> None:
    """Write one page that shows how accurate and how fair models are, from stored evidence alone.

    The page is a single file. It opens without a network, and asks nobody for
    anything.
    """
    with working("Writing the report"):
        from fairpass.report import find_evidence, write_report

        evidences = find_evidence(paths)
        page = write_report(evidences, out)
    if as_json:
        audits = [{"title": each.title, "chosen": each.chosen, "made": each.made} for each in evidences]
        print_json({"report": str(page), "audits": audits})
        return
    print_line(f"The report is {page}.")


def keep(
    data: "Data",
    models: "Mapping[str, Sequence[NodeClassifier]]",
    directory: Path,
    *,
    title: str,
    question: str = "",
    chosen: str | None = None,
    choice: str = "",
) -> Path:
    """Collect the evidence of fitted models in a directory, with the page beside it; return the page."""
    with working("Writing the report"):
        from fairpass.report import collect, write_report

        evidence = collect(data, models, title=title, question=question, chosen=chosen, choice=choice)
        evidence.save(directory)
        return write_report([evidence], directory / PAGE)
