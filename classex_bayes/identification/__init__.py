"""Identification tasks: which stimulus evoked a response? Encoding models turned into decoders."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
