"""Manual pages, recognised by their second half."""

import gzip
import re

import numpy as np

from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.text_features import LatentSemantics, words

# Versions and licences.
_PACKAGES = {
    "erlang-manpages": ("25.2.3", "Apache-2.0"),
    "freebsd-manpages": ("12.2", "BSD"),
    "git-man": ("2.39.5", "GPL-2"),
    "libcurl4-doc": ("7.88.1", "curl"),
    "libssl-doc": ("3.0.20", "Apache-2.0"),
    "libx11-doc": ("1.8.4", "MIT and the like"),
    "manpages": ("6.03", "verbatim, GPL and BSD, page by page"),
    "manpages-dev": ("6.03", "verbatim, GPL and BSD, page by page"),
    "mpich-doc": ("4.0.2", "MIT and the like"),
    "ncurses-doc": ("6.4", "MIT and the like"),
    "openmpi-doc": ("4.1.4", "BSD"),
    "perl-doc": ("5.36.0", "Artistic or GPL"),
    "tcl8.6-doc": ("8.6.13", "Tcl licence"),
    "tcllib": ("1.21", "Tcl licence"),
    "tk8.6-doc": ("8.6.13", "Tcl licence"),
}
_N_PAGES = 6_000
_FEWEST_WORDS = 100
# Escapes of roff: first fonts, sizes, registers and characters by name, then all others.
_ESCAPE = re.compile(r"\\(?:f\[\w*\]|f\(\w\w|f\w|s[-+]?\d+|\*?\(..|\*?\[\w+\]|n\w)|\\[&|^%ce]")


def plain(source: str) -> str:
    """Return the text of a manual page from its first section, without comments and escapes.

    Names of macros are removed, and their arguments are kept.
    """
    section = re.search(r"^\.\s*S[Hh]\b", source, re.MULTILINE)
    text = source[section.start() if section else 0 :]
    text = re.sub(r"^[.']\s*\\\".*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^[.']\s*\w*", "", text, flags=re.MULTILINE)
    return _ESCAPE.sub("", text).replace("\\-", "-")


def halves(text: str) -> tuple[list[str], list[str]]:
    """Return the first and the second half of the words of a text."""
    every = words(text)
    return every[: len(every) // 2], every[len(every) // 2 :]


def manual_pages(packages: Packages) -> list[tuple[list[str], list[str]]]:
    """Halves of all different pages with enough words."""
    texts = {}
    for name in _PACKAGES:
        folder = packages.debian(name)
        for file in sorted(folder.glob("usr/share/man/man*/*.gz")):
            if not file.is_symlink():
                source = gzip.decompress(file.read_bytes()).decode("utf8", "replace")
                first, second = halves(plain(source))
                if len(first) + len(second) >= _FEWEST_WORDS:
                    texts[(*first, *second)] = first, second
    return list(texts.values())


def _by_halves(packages: Packages) -> Population:
    pages = shuffled(manual_pages(packages), 17)
    tested = pages[:_N_PAGES]
    training = [first + second for first, second in pages[_N_PAGES:]]
    vectors = LatentSemantics(training, 200)
    gallery, probes = (vectors([page[half] for page in tested]) for half in (0, 1))
    return Population(gallery, probes, np.arange(len(tested)), "cosine")


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="manual-halves",
        kind="text",
        summary="manual pages, the second half from the first; latent semantics of words",
        about=(
            "Classes are 6,000 manual pages, drawn at random from those of FreeBSD, Linux, Perl, "
            "Tcl, Tk, Erlang, Git, OpenSSL, cURL, X11, ncurses and two versions of MPI. The "
            "template is the first half of the words of a page, counted from its first section, "
            "and the test instance is the second half. Pages of fewer than 100 words, links to "
            "other pages and copies with the same words are left out. Families of similar pages "
            "stay. No noise is added. A wrong answer continues a page with the end of another."
        ),
        classifier=(
            "Cosine in the latent semantic space (200 dimensions) of words, learnt on the other "
            "pages of the packages."
        ),
        packages=tuple(
            f"{name} {version} (Debian, {licence})"
            for name, (version, licence) in _PACKAGES.items()
        ),
        make=_by_halves,
    ),
)
