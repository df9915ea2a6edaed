"""Build hook of hatchling: README.md with absolute links, which a package index needs."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class AbsoluteLinks(MetadataHookInterface):
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
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
