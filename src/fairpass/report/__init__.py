"""The audit report: what was found is collected once, stored, and shown on one page that needs nothing else."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
