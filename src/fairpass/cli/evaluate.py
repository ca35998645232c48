"""`fairpass evaluate`: how accurate and how fair a stored model is."""

from typing import Annotated, Literal

import typer

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.option_groups import with_option_groups
from fairpass.cli.output import JsonFlag, examples, print_json, working
from fairpass.cli.prediction_options import PredictionOptions
from fairpass.cli.results import show_evaluation, title_of
from fairpass.cli.stored_model import ModelPath, load_with_graph

EXAMPLES = examples(
    {
        "The numbers that `fairpass train` showed": "fairpass evaluate runs/german/model.safetensors german",
        "On validation, with confidence intervals": (
            "fairpass evaluate runs/german/model.safetensors german --on val --bootstrap 1000"
        ),
        "On people whom the model has never seen": (
            "fairpass evaluate runs/people/model.safetensors --nodes others.csv --edges their_friends.csv"
        ),
    }
)

# The library's own type would do, but it comes with torch: a test keeps this equal to it.
Split = Literal["train", "val", "test"]


@with_option_groups
def evaluate(
    model: ModelPath,
    graph: GraphOptions,
    on: Annotated[Split, typer.Option(help="Which nodes to look at.")] = "test",
    bootstrap: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="Resamples for 95 % confidence intervals.")
    ] = 0,
    *,
    prediction: PredictionOptions,
    as_json: JsonFlag = False,
) -> None:
    """Show how accurate and how fair a stored model is.

    Of a graph that the model was trained on, split and features are those of the
    training. Other tables are encoded as the tables of the training were, and
    all their labelled nodes are test nodes.
    """
    groups = {} if prediction.unknown_group is None else {"missing_sensitive": prediction.missing_sensitive}
    classifier, data = load_with_graph(model, graph, **groups)
    with working("Measuring"):
        evaluation = classifier.evaluate(data, on, undefined="nan", bootstrap=bootstrap, **prediction.given())
    if as_json:
        print_json(
            {
                "model": str(model),
                "method": classifier.name,
                "split": on,
                "evaluation": evaluation.to_dict(),
                "provenance": data.provenance,
            }
        )
    else:
        show_evaluation(f"{classifier.name} on {title_of(data)}", evaluation, data, on)
