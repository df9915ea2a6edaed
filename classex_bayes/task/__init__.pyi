from .class_priors import accuracy_under_priors as accuracy_under_priors
from .glyphs import Glyphs as Glyphs
from .glyphs import load_glyphs as load_glyphs
from .rules import Finding as Finding
from .sampling_design import Sampling as Sampling
from .source_task import SourceTask as SourceTask
