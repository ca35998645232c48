"""fairpass: fair node classification on graphs by message passing.

The public names are listed in `__init__.pyi` and imported on first use, so that `import fairpass` is cheap.
"""

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
