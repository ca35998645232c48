"""Utility of a classifier and differences between groups: scores in, one frozen record out."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
