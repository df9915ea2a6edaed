"""Identification of stimuli from responses, with the predictions of any encoding model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
