"""Build hook of hatchling: README.md as a package index shows it.

Links are absolute, and commands install the package by its name rather than from a clone.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ReadmeOfTheIndex(MetadataHookInterface):
    """Relative links of the readme lead to the files of this version in the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme. Pictures need the file itself, other links its page."""
        root, repository = Path(self.root), metadata["urls"]["Repository"]
        code = (root / "classex_bayes/_version.py").read_text(encoding="utf-8")
        version = re.search(r'__version__ = "(.+)"', code)[1]
        text = (root / "README.md").read_text(encoding="utf-8")
        relative = r"\]\((?!\w+:|#)"
        text = re.sub(rf"(!\[[^\]]*){relative}", rf"\1]({repository}/raw/v{version}/", text)
        text = re.sub(relative, f"]({repository}/blob/v{version}/", text)
        text = re.sub(r", in a clone of th\w+ repository", "", text)
        text = text.replace('pip install ".[', f'pip install "{metadata["name"]}[')
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
