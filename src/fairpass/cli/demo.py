"""`fairpass demo`: how differently men and women are treated, and what it costs to change that."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairpass.cli.compare import keep, run_comparison
from fairpass.cli.options import Result, command
from fairpass.cli.output import STARTING, bullets, choose_threads, print_line, section, working
from fairpass.cli.results import show_rows, title_of

if TYPE_CHECKING:
    from fairpass.methods import NodeClassifier
    from fairpass.runs import RunRecord

_GRAPH = "adult"
# Each seed has its own split: on this graph the split moves the differences between groups more than the seed.
_SEEDS = range(3)
_EPOCHS = 300
# Averaged over ten epochs; chosen by hand for the demo, where it is steadier over three splits than one epoch.
_WINDOW = 10
# The most accurate of the methods without fairness on validation nodes: what fairness costs is counted from here.
_PLAIN, _DP, _EO = "logistic", "gmmd (dp)", "gmmd (eo)"
_CONSTANT = "constant"


@command
def demo(out: Path = Path("fairpass-demo")) -> Result:
    with working(STARTING):
        from fairpass import datasets
        from fairpass.runs import Comparison, summarise

    choose_threads()  # beside other programs on two cores, a fit took ten times as long with two threads
    out.mkdir(parents=True, exist_ok=True)  # finds out early if it cannot be written
    with working(f"Loading {_GRAPH}"):
        splits = [datasets.load(_GRAPH, split_seed=seed) for seed in _SEEDS]
    classifiers = _classifiers()
    comparisons = [Comparison.of(classifiers, data) for data in splits]
    models = [
        run_comparison(comparison, comparison.specs(classifiers, [seed]), data, keep_models=True)
        for seed, data, comparison in zip(_SEEDS, splits, comparisons, strict=True)
    ]
    runs = [run for comparison in comparisons for run in comparison.runs]
    methods = summarise(runs, references=[_CONSTANT])
    sentences = _sentences(runs)
    page = keep(
        splits[0],
        models[0],
        out,
        title="Who earns more than 50K? An audit of five classifiers",
        question="Is a high income predicted for men and women alike?",
        chosen=_DP,
        choice="GMMD for demographic parity is what this demonstration is about.",
    )
    yield {
        "rows": [row.to_dict() for row in methods],
        "in_words": sentences,
        "comparisons": [comparison.to_dict() for comparison in comparisons],
        "report": str(page),
    }
    title = f"{title_of(splits[0])}, test nodes, epoch and threshold chosen on validation"
    show_rows(title, methods, runs, over="splits")
    section("In words", bullets(sentences))
    print_line(f"\nThe report on the first split is {page}: open it in a browser.")


def _classifiers() -> "dict[str, NodeClassifier]":
    """Return the methods by the name of their row; all networks are trained and selected in the same way."""
    from fairpass.methods import GCN, GMMD, Constant, Logistic

    training = GMMD.default_training().but(
        epochs=_EPOCHS, window=_WINDOW, threshold="accuracy", track_discrepancy=False
    )
    # The encoder was chosen on validation nodes: the edges of this graph add nothing to the features.
    linear: dict[str, Any] = {"encoder": "linear", "lambda_s": 0.0, "training": training}
    return {
        _CONSTANT: Constant(),
        _PLAIN: Logistic(training=Logistic.default_training().but(threshold="accuracy")),
        "gcn": GCN(training=training),
        _DP: GMMD(criterion="dp", **linear),
        _EO: GMMD(criterion="eo", **linear),
    }


def _sentences(runs: "Sequence[RunRecord]") -> list[str]:
    from fairpass.runs import Rate, rates_in_words

    names = {"male": "men", "female": "women", _PLAIN: "Logistic regression", _DP: "GMMD (dp)", _EO: "GMMD (eo)"}
    goals: dict[str, Rate] = {_DP: "selection_rate", _EO: "true_positive_rate"}
    of = {name: [run for run in runs if run.method == name] for name in (_PLAIN, *goals)}
    about: dict[str, Any] = {"label": "an income over 50K", "names": names}
    return [rates_in_words(of[_PLAIN], of[name], rate, **about) for name, rate in goals.items()]
