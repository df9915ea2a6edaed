"""`.. summary:: tasks`: a table of the names that docs/api/tasks.md documents, one line each."""

import re
from pathlib import Path
from typing import ClassVar

from docutils.nodes import Node
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.ext.autosummary import Autosummary

API = Path(__file__).parents[1] / "api"


class Summary(Autosummary):
    """A table of autosummary, whose names are read from a page's own directives."""

    required_arguments = 1
    has_content = False
    option_spec: ClassVar = {}

    def run(self) -> list[Node]:
        """Names of the page, without their modules and without signatures."""
        page = API / f"{self.arguments[0]}.md"
        self.env.note_dependency(str(page))
        names = re.findall(r"^\.\. auto\w+:: ([\w.]+)$", page.read_text("utf-8"), re.MULTILINE)
        self.content = StringList([f"~{name}" for name in names], str(page))
        self.options["nosignatures"] = None
        return super().run()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.setup_extension("sphinx.ext.autosummary")
    app.add_directive("summary", Summary)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
