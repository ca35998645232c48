"""Search for configurations: spaces, strategies from Optuna, and the front between utility and fairness."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
