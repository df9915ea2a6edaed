"""Sphinx configuration: `sphinx-build -W -n -c docs . build/docs`, from the root of the repository.

The source directory is the root, so that links between README, pages and notebooks are the same
on a code host and on the site.
"""

import sys
from pathlib import Path

import classex_bayes

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "classex_bayes"
author = copyright = "The classex_bayes developers"
version = release = classex_bayes.__version__

extensions = ["mathml", "myst_nb", "numpydoc", "sphinx.ext.autodoc"]
include_patterns = ["docs/**", "notebooks/**", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = ["**/.ipynb_checkpoints"]
root_doc = "docs/index"
# Names in backticks are those of parameters as often as those of public objects.
default_role = "code"

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 4
# Outputs are stored in the notebooks; tests execute them.
nb_execution_mode = "off"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False

html_theme = "furo"
html_title = "classex_bayes"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_root"]
html_show_sourcelink = False
html_math_renderer = "mathml"
