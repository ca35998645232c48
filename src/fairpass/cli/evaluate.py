"""`fairpass evaluate` and `fairpass predict`: use a stored model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.options import PredictionOptions, Result, command
from fairpass.cli.output import print_line, working
from fairpass.cli.results import show_evaluation, title_of

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.methods import NodeClassifier

# The type of the library, without importing torch; a test compares them.
Split = Literal["train", "val", "test", "safety"]

_UNKNOWN_GROUP = {
    "none": "where the method needs the group, their scores are not corrected",
    "estimate": "where the method needs the group, theirs is estimated from the features",
    "error": "the method does not need the group",  # otherwise it would have refused them
}


@command
def evaluate(
    model: Path, graph: GraphOptions, on: Split = "test", bootstrap: int = 0, *, prediction: PredictionOptions
) -> Result:
    groups = {} if prediction.unknown_group is None else {"missing_sensitive": prediction.missing_sensitive}
    classifier = load_stored_model(model)
    data = load_like_fit(classifier, graph, **groups)
    with working("Measuring"):
        evaluation = classifier.evaluate(data, on, undefined="nan", bootstrap=bootstrap, **prediction.given())
    document = {"model": str(model), "method": classifier.name, "split": on, "evaluation": evaluation.to_dict()}
    yield {**document, "provenance": data.provenance}
    counts = data.y[data[f"{on}_mask"] & (data.y >= 0)].bincount().tolist()
    show_evaluation(f"{classifier.name} on {title_of(data)}", evaluation, on, counts, data.label_names)


@command
def predict(
    model: Path, graph: GraphOptions, out: Path, fitted: str | None = None, *, prediction: PredictionOptions
) -> None:
    if out.suffix not in (".csv", ".parquet"):
        raise typer.BadParameter(f"--out must end in .csv or .parquet (got {str(out)!r})")
    tables = [graph.nodes, graph.edges, *(Path(part) for part in (fitted or "").split(",") if part)]
    if out.exists() and any(table is not None and table.exists() and table.samefile(out) for table in tables):
        raise typer.BadParameter(f"--out must be another file than the tables (got {str(out)!r})")
    if fitted is not None:
        graph.check_new_nodes()
    classifier = load_stored_model(model)
    if fitted is None:
        data = load_like_fit(classifier, graph, edges=None, missing_sensitive=prediction.missing_sensitive)
    else:
        with working("Reading the fitted graph"):
            from fairpass.projects.fitted_graph import fitted_graph

            known = fitted_graph(classifier.provenance_, fitted)
        data = graph.join_to(known, missing_sensitive=prediction.missing_sensitive)
    with working("Predicting"):
        from fairpass.projects.predictions import prediction_table, write_table

        predictions = prediction_table(classifier, data, **prediction.given())
        write_table(predictions, out)
    count = "1 prediction is" if len(predictions) == 1 else f"{len(predictions):,} predictions are"
    print_line(f"{count} in {out}.")
    if sentence := _edges(data):
        print_line(sentence)
    if unknown := int(predictions["group"].isna().sum()):
        done = _UNKNOWN_GROUP[prediction.unknown_group or "none"]
        print_line(f"Nodes of unknown group: {unknown:,} of {len(predictions):,}; {done}.")
    if classifier.promise_ is not None and classifier.promise_.verdict != "shown":
        print_line(f"Beware of the model. When it was made: {classifier.promise_.sentence}")


def load_stored_model(path: Path) -> "NodeClassifier":
    with working("Loading the model"):
        from fairpass.methods import load_model

        return load_model(path)


def load_like_fit(model: "NodeClassifier", graph: GraphOptions, **others: Any) -> "Data":
    """Return a graph; options that the user does not give are those of the fit, or `others` for other tables."""
    from fairpass.projects.fitted_graph import options_of_fit, said_before

    provenance = model.provenance_ or {}
    if graph.name is None:
        like_fit = options_of_fit(provenance, graph.nodes, graph.edges, **others) if "encoding" in provenance else {}
        with said_before({} if graph.given.keys() - {"nodes", "edges"} else like_fit):
            return graph.load(**like_fit)
    # Above all the split: nodes of the training must not be test nodes now.
    options = provenance.get("options", {}) if provenance.get("name") == graph.benchmark else {}
    return graph.load(**{name: value for name, value in options.items() if value is not None})


def _edges(data: "Data") -> str:
    """Return how new nodes are connected to the graph, or that there are no edges."""
    import torch

    alone = torch.ones(data.num_nodes, dtype=torch.bool)
    alone[data.edge_index[0]] = False
    new = data.get("new_mask")
    if new is None:
        return "None of the nodes has an edge: they are classified by their features alone." if alone.all() else ""
    source, target = data.edge_index
    links = int((new[source] & ~new[target]).sum())
    sentence = f"Edges between new nodes and the {int((~new).sum()):,} nodes of the graph: {links:,}."
    count = int(alone[new].sum())
    return f"{sentence} New nodes without any edge: {count:,}." if count else sentence
