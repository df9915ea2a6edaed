from .decoding import decoding_scores as decoding_scores
from .decoding import identification_task as identification_task
from .decoding import whiten as whiten
from .encoding import EncodingModel as EncodingModel
from .noise import shrinkage_intensity as shrinkage_intensity
from .noise import shrunk_covariance as shrunk_covariance
