"""Recognition tasks drawn from known laws, with exact accuracy at every number of classes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
