"""`fairpass demo`: what fairness is to be had, and what it costs, in half a minute."""

from rich.text import Text

from fairpass.cli.compare import run_trials
from fairpass.cli.output import JsonFlag, examples, print_json, section, working
from fairpass.cli.results import show_comparison, title_of

EXAMPLES = examples(
    {
        "What is it about?": "fairpass demo",
        "The same with all methods, more seeds and longer training": "fairpass compare german",
    }
)

_SEEDS = range(3)
_EPOCHS = 100


def demo(as_json: JsonFlag = False) -> None:
    """Compare four classifiers on the German credit graph: who is granted credit, men and women alike?

    The constant classifier, a graph convolutional network, and the two
    fairness-aware message passing methods, GMMD and GMMD-S, over three seeds.
    """
    with working("Starting"):
        from fairpass import datasets
        from fairpass.methods import GCN, GMMD, GMMDS, Constant, NodeClassifier
        from fairpass.methods.comparison import Comparison
        from fairpass.methods.tradeoff import tradeoff

        data = datasets.load("german")
    # The last epoch of each: choosing one on so few validation nodes is a matter of luck, and prefers
    # classifiers that are still near constant.
    training = {"epochs": _EPOCHS, "select": "last", "track_discrepancy": False}
    classifiers: dict[str, NodeClassifier] = {"constant": Constant()}
    for method in (GCN, GMMD, GMMDS):
        classifiers[method.name] = method(training=method.default_training().but(**training))
    comparison = run_trials(Comparison.of(classifiers, data), classifiers, data, seeds=_SEEDS)
    sentence = tradeoff(*(comparison.row(name) for name in ("gcn", "gmmd", "gmmd-s")))
    if as_json:
        print_json({**comparison.to_dict(), "tradeoff": sentence})
        return
    show_comparison(f"{title_of(data)}, published split, last of {_EPOCHS} epochs", comparison)
    section("In one sentence", Text(sentence))
