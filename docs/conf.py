"""Sphinx configuration: `sphinx-build -W -n -c docs . build/docs`, from the root of the repository.

The source directory is the root, so that links between README, pages and notebooks are the same
on a code host and on the site.
"""

import re
import sys
from pathlib import Path

from numpydoc.xref import DEFAULT_LINKS

import classex_bayes

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "classex_bayes"
author = copyright = "The classex_bayes developers"
version = release = classex_bayes.__version__

extensions = [
    "mathml",
    "phones",
    "summaries",
    "myst_nb",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
]
include_patterns = ["docs/**", "notebooks/**", "CHANGELOG.md", "CONTRIBUTING.md"]
# The paper is in the form of a journal, with citations of pandoc.
exclude_patterns = ["**/.ipynb_checkpoints", "docs/paper"]
root_doc = "docs/index"
# Names in backticks are those of parameters as often as those of public objects.
default_role = "code"

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 4
# Outputs are stored in the notebooks; tests execute them.
nb_execution_mode = "off"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "BaseException"}
numpydoc_show_class_members = False

# Types in docstrings are links. The few names that are used stand in text inventories of this
# folder, so that a build needs no network; _inventories/write.py looks them up again.
_PROJECTS = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "pandas": "https://pandas.pydata.org/docs/",
    "xarray": "https://docs.xarray.dev/en/stable/",
    "pymc": "https://www.pymc.io/projects/docs/en/stable/",
    "sklearn": "https://scikit-learn.org/stable/",
    "matplotlib": "https://matplotlib.org/stable/",
}
intersphinx_mapping = {
    name: (address, f"docs/_inventories/{name}.txt") for name, address in _PROJECTS.items()
}
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = (
    {name: name for name in DEFAULT_LINKS}
    | {  # int, str: no links
        "Path": "pathlib.Path",
        "ndarray": "numpy.ndarray",
        "Generator": "numpy.random.Generator",
        "SeedSequence": "numpy.random.SeedSequence",
        "DataFrame": "pandas.DataFrame",
        "Series": "pandas.Series",
        "DataArray": "xarray.DataArray",
        "Dataset": "xarray.Dataset",
        "DataTree": "xarray.DataTree",
        "pymc.Model": "pymc.model.core.Model",
        "Axes": "matplotlib.axes.Axes",
    }
    | {
        name.rpartition(".")[2]: name
        for page in (HERE / "api").glob("*.md")
        for name in re.findall(
            r"^\.\. autoclass:: ([\w.]+)$", page.read_text("utf-8"), re.MULTILINE
        )
    }
)

html_theme = "furo"
html_title = "classex_bayes"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
# Prompts and printed results are not copied.
copybutton_exclude = ".linenos, .gp, .go"
html_extra_path = ["_root"]
html_show_sourcelink = False
html_math_renderer = "mathml"
smartquotes_action = "qe"  # the dashes of --options stay
