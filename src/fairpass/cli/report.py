"""`fairpass report`: stored evidence as one page."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairpass.cli.options import command
from fairpass.cli.output import print_json, print_line, working

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch_geometric.data import Data

    from fairpass.methods import NodeClassifier

PAGE = "report.html"


@command
def report(paths: list[Path], out: Path = Path(PAGE), as_json: bool = False) -> None:
    """Write one page that shows how accurate and how fair models are, from stored evidence alone.

    The page is a single, self-contained file: it makes no network requests.
    """
    with working("Writing the report"):
        from fairpass.report import find_evidence, write_report

        evidences = find_evidence(paths)
        page = write_report(evidences, out)
    if as_json:
        audits = [{"title": each.title, "chosen": each.chosen, "made": each.made} for each in evidences]
        print_json({"report": str(page), "audits": audits})
    else:
        print_line(f"The report is {page}.")


def keep(data: "Data", models: "Mapping[str, Sequence[NodeClassifier]]", directory: Path, **about: Any) -> Path:
    """Write the evidence of fitted models and the page to a directory; return the page. `about` goes to `collect`."""
    with working("Writing the report"):
        from fairpass.report import collect, write_report

        evidence = collect(data, models, **about)
        evidence.save(directory)
        return write_report([evidence], directory / PAGE)
