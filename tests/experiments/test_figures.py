"""Figures are pure functions of the records: drawn without a screen, and the same for the same records."""

from pathlib import Path

import matplotlib as mpl
from tests.experiments.conftest import AllResults, results_of

from fairpass.experiments.figures import STYLES, write_figure

# How many axes a figure has, colour bars included, with three data sets and with German alone.
AXES = {
    "main": (15, 5),
    "hyper": (12, 4),
    "layers": (15, 5),
    "theory": (12, 4),
    "alpha": (15, 5),
    "mlp": (15, 5),
    "cases-distributions": (9, 3),
    "cases-german": (6, 6),
    "cases-credit": (6, 0),
    "cases-bail": (6, 0),
    "runtime": (3, 1),
}


def test_every_figure_has_its_axes(results: AllResults) -> None:
    figures = {name: figure for found in results.values() for name, figure in found.figures.items()}
    assert {name: len(figure.axes) for name, figure in figures.items()} == {
        name: all_ for name, (all_, _) in AXES.items()
    }
    for figure in figures.values():
        assert any(ax.get_title() or ax.get_title(loc="left") for ax in figure.axes)


def test_both_histograms_fit_into_their_axes(results: AllResults) -> None:
    figure = results["cases"].figures["cases-distributions"]
    assert all(ax.get_ylim()[1] > 10 for ax in figure.axes)


def test_missing_data_sets_are_left_out_of_figures(german_only: AllResults, nothing: AllResults) -> None:
    figures = {name: figure for found in german_only.values() for name, figure in found.figures.items()}
    assert {name: len(figure.axes) for name, figure in figures.items()} == {
        name: german for name, (_, german) in AXES.items() if german
    }
    assert all(found.figures == {} for found in nothing.values())


def test_files_are_whole_and_always_the_same(tmp_path: Path, all_records: Path) -> None:
    for attempt in ("one", "two"):
        ((name, figure),) = results_of(all_records, ("german",))["runtime"].figures.items()
        for kind in ("png", "svg"):
            write_figure(figure, tmp_path / attempt / f"{name}.{kind}")
    png, svg = ((tmp_path / "one" / f"runtime.{kind}").read_bytes() for kind in ("png", "svg"))
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 1400  # 7 inches at 200 dots each
    assert b"<svg" in svg
    assert (tmp_path / "two" / "runtime.png").read_bytes() == png
    assert (tmp_path / "two" / "runtime.svg").read_bytes() == svg


def test_matplotlib_is_left_as_it_was(all_records: Path) -> None:
    before = dict(mpl.rcParams)
    assert results_of(all_records, ("german",))["main"].figures
    assert dict(mpl.rcParams) == before


def test_methods_can_be_told_apart() -> None:
    colours, markers, _ = zip(*STYLES.values(), strict=True)
    assert len(set(colours)) == len(set(markers)) == len(STYLES)
