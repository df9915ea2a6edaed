from .basis import RadialBasis as RadialBasis
from .law import MixtureLaw as MixtureLaw
from .metrics import named_metric as named_metric
from .normal_law import expected_power as expected_power
from .normal_law import signal_accuracy as signal_accuracy
