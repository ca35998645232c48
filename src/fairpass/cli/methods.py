"""`fairpass methods`: what can be trained."""

import inspect

from rich.text import Text

from fairpass.cli.options import command
from fairpass.cli.output import print_json, rows, section, working


@command
def methods(as_json: bool = False) -> None:
    """List the methods that can be trained, including those of other packages."""
    with working("Starting"):
        from fairpass.methods import method, names

        found = {name: method(name) for name in names()}
    if not as_json:
        section("Methods", rows((Text(name, "bold"), Text(each.summary)) for name, each in found.items()))
        return
    about = []
    for name, each in found.items():
        parameters = inspect.signature(each).parameters
        defaults = {key: value.default for key, value in parameters.items() if key != "training"}
        training = each.default_training().to_dict()
        about.append({"name": name, "summary": each.summary, "parameters": defaults, "training": training})
    print_json(about)
