"""Point estimators of the accuracy on more classes, and the class that they derive from."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
