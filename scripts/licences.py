"""Write `docs/licences.md`: every package that an installed fairpass needs, with its version and licence.

python -m scripts.licences
"""

import re
import tomllib
from collections.abc import Iterable
from email.message import Message
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import cast

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"

_HEAD = """\
# Licences of the dependencies

fairpass is published under the MIT licence. It needs the packages below, directly or through another one; none of their
code is part of it. `make lock` writes this page from what the installed packages say of themselves.

| package | version | licence |
|---|---|---|
"""


def needed(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Return the installed packages that some requirements need, and those that these need, by name."""
    found: dict[str, Distribution] = {}
    todo = [Requirement(each) for each in requirements]
    while todo:
        each = todo.pop()
        if each.marker is not None and not any(each.marker.evaluate({"extra": extra}) for extra in ("", *each.extras)):
            continue
        name = canonicalize_name(each.name)
        if name not in found:
            try:
                found[name] = distribution(name)
            except PackageNotFoundError:  # for another system, or another version of Python
                continue
            todo += [Requirement(text) for text in found[name].requires or ()]
    return dict(sorted(found.items()))


def licence(package: Distribution) -> str:
    """Return a package's licence in a few words."""
    about = cast(Message, package.metadata)
    classified = [
        text.rpartition(" :: ")[2] for text in about.get_all("Classifier", []) if text.startswith("License ::")
    ]
    stated = (about.get("License") or "").strip().partition("\n")[0]
    words = about.get("License-Expression") or ", ".join(classified) or (stated if len(stated) < 60 else "")
    return re.sub(r"\s+", " ", words.replace("|", "/")) or "see the package"


def runtime_requirements() -> list[str]:
    """Return the dependencies of this project, without those of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return list(project["dependencies"])


def page() -> str:
    """Return the text of the page."""
    packages = needed(runtime_requirements())
    return _HEAD + "".join(f"| {name} | {each.version} | {licence(each)} |\n" for name, each in packages.items())


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE.name} is written")
