"""Everything that a command may import, imported once: trials are forked from a server that has it."""

import gc
import pkgutil
from importlib import import_module
from typing import Any

import fairpass

_LATE = ("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "matplotlib.pyplot", "alembic.command")


def import_all(package: Any = fairpass) -> None:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for name in _LATE:
        import_module(name)


import_all()
# Otherwise every fork would copy all this memory at its first collection.
gc.freeze()
