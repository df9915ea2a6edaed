from .decoding import decoding_scores as decoding_scores
from .decoding import identification_task as identification_task
from .decoding import shrinkage_intensity as shrinkage_intensity
from .decoding import shrunk_covariance as shrunk_covariance
