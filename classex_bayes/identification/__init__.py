"""Identification tasks: which stimulus evoked a response? Encoding models turned into decoders."""

from classex_bayes.identification.decoding import decoding_scores, identification_task, whiten
from classex_bayes.identification.encoding import EncodingModel
from classex_bayes.identification.noise import shrinkage_intensity, shrunk_covariance

__all__ = [
    "EncodingModel",
    "decoding_scores",
    "identification_task",
    "shrinkage_intensity",
    "shrunk_covariance",
    "whiten",
]
