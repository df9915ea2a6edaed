"""Runs the code of the pages by role and of some others, and writes what it prints below it.

The tests run the code of `PAGES` with fewer draws.
"""

import io
import re
from contextlib import redirect_stdout

from studies.pages import DOCS

PAGES = [DOCS / f"{name}.md" for name in ("bounds", "data", "sampling", "scores")]
PAGES += sorted((DOCS / "roles").glob("*.md"))
# Few draws, as in the tests, give other diagnoses; the tests check the statements of ArviZ's page.
OF_ALL_DRAWS = [DOCS / "checks.md", DOCS / "arviz.md"]
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.DOTALL | re.MULTILINE)


def with_outputs(text: str) -> str:
    """A page whose Python blocks are each followed by what they print; they share their names."""
    names: dict[str, object] = {"__name__": "page"}

    def run(block: re.Match[str]) -> str:
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(block[1], "page", "exec"), names)
        lines = [line.rstrip() for line in printed.getvalue().splitlines()]
        output = "\n```text\n" + "\n".join(lines) + "\n```\n" if lines else ""
        return f"```python\n{block[1]}```\n{output}"

    return _BLOCK.sub(run, text)


def main() -> None:
    """Write all pages."""
    for page in [*PAGES, *OF_ALL_DRAWS]:
        page.write_text(with_outputs(page.read_text("utf-8")), "utf-8")
