"""`fairpass methods`: what can be trained."""

from typing import TYPE_CHECKING, Any

from rich.text import Text

from fairpass.cli.output import JsonFlag, examples, print_json, rows, section, working

if TYPE_CHECKING:
    from fairpass.methods import NodeClassifier

EXAMPLES = examples(
    {"What is there?": "fairpass methods", "With all parameters and their defaults": "fairpass methods --json"}
)


def methods(as_json: JsonFlag = False) -> None:
    """List the methods that can be trained, those of other packages included."""
    with working("Starting"):
        from fairpass.methods import method, names

        found = {name: method(name) for name in names()}
    if as_json:
        print_json([_about(name, each) for name, each in found.items()])
    else:
        section("Methods", rows((Text(name, "bold"), Text(each.summary)) for name, each in found.items()))


def _about(name: str, found: "type[NodeClassifier]") -> dict[str, Any]:
    parameters = found.declared
    return {
        "name": name,
        "summary": found.summary,
        "parameters": {each: about.default for each, about in parameters.items() if each != "training"},
        "training": found.default_training().to_dict(),
    }
