"""Extrapolate a classifier's accuracy to more classes, with a posterior.

The names and their places are in `__init__.pyi`. Each loads on first use, so that importing the
package costs next to nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
