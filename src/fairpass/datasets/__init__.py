"""Graphs to learn from: the benchmarks, a user's own tables, and synthetic ones.

The names are declared in `__init__.pyi` and loaded when they are first used, so that none costs more than it needs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
