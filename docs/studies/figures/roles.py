"""Run the code of the pages by role and write what it prints below it.

`python docs/roles/print_outputs.py`, from the root of the repository. The tests run the same code
with fewer draws.
"""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

PAGES = sorted(Path(__file__).parent.glob("*.md"))
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


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_outputs(page.read_text("utf-8")), "utf-8")
