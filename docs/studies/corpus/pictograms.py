"""Icons with the same name in several themes, and emoji of two vendors."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.projections import (
    discriminant_axes,
    whitened_components,
)

_SIDE = 48
_TEMPLATES = "papirus-icon-theme/Papirus/64x64/apps"
_THEMES = (
    "numix-icon-theme-circle/Numix-Circle/48/apps",
    "moka-icon-theme/Moka/48x48/apps",
    "paper-icon-theme/Paper/48x48/apps",
    "obsidian-icon-theme/Obsidian/apps/48",
)
_DRAW_SVG = """
import sys, resvg_py
from pathlib import Path
for row, file in enumerate(sys.stdin.read().splitlines()):
    png = resvg_py.svg_to_bytes(svg_path=file, width=48, height=48, skip_system_fonts=True)
    Path(sys.argv[1], f"{row}.png").write_bytes(png)
"""
# Weight of colours relative to edges. The squares of edge features add up to one.
_COLOUR = 0.1
# Code points that choose the style of an emoji or join it to others.
_JOINERS = {0xFE0F, 0x200D}


def on_white(image: Image.Image) -> IntArray:
    """Return a picture on white, scaled and centred, as colours (side, side, 3)."""
    picture = image.convert("RGBA")
    longest = max(picture.size)
    square = Image.new("RGBA", (longest, longest), "white")
    corner = (longest - picture.width) // 2, (longest - picture.height) // 2
    square.alpha_composite(picture, corner)
    small = square.convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BILINEAR)
    return np.asarray(small)


def icons_of_theme(folder: Path) -> dict[str, Path]:
    """Return the file of each icon name in a theme; several names may link to one file."""
    files = {file.stem: file.resolve() for file in sorted(folder.iterdir())}
    return {name: file for name, file in files.items() if file.is_file()}


def same_icons(template: dict[str, Path], themes: list[dict[str, Path]]) -> dict[Path, list[Path]]:
    """Match each drawing of the template's theme with the drawings of the other themes.

    A theme is searched for the name of the file, then for the other names that link to it in
    alphabetical order. Drawings without a match are left out.
    """
    names_of = defaultdict(list)
    for name, file in sorted(template.items(), key=lambda icon: (icon[0] != icon[1].stem, icon)):
        names_of[file].append(name)
    pairs = {}
    for file, names in names_of.items():
        hits = [[theme[name] for name in names if name in theme][:1] for theme in themes]
        if any(hits):
            pairs[file] = [drawing for hit in hits for drawing in hit]
    return pairs


def _pictures(files: Iterable[Path], packages: Packages) -> dict[Path, IntArray]:
    """Pixels of icons. Outlines are drawn by resvg."""
    files = sorted(set(files))
    outlines = [file for file in files if file.suffix == ".svg"]
    path = {**os.environ, "PYTHONPATH": str(packages.pypi("resvg_py", "0.5.0"))}
    with TemporaryDirectory() as scratch:
        done = subprocess.run(
            [sys.executable, "-c", _DRAW_SVG, scratch],
            input="\n".join(map(str, outlines)), capture_output=True, text=True, env=path,
        )  # fmt: skip
        if done.returncode:
            raise DataError(f"resvg_py: cannot draw the icons ({done.stderr.strip()[-200:]})")
        drawn = {file: Path(scratch, f"{row}.png") for row, file in enumerate(outlines)}
        return {file: on_white(Image.open(drawn.get(file, file))) for file in files}


def _icons(packages: Packages) -> Population:
    folders = [
        packages.debian(package) / "usr/share/icons" / folder
        for package, _, folder in (place.partition("/") for place in (_TEMPLATES, *_THEMES))
    ]
    template, *themes = map(icons_of_theme, folders)
    pairs = same_icons(template, themes)
    pictures = _pictures([file for pair in pairs.items() for file in (pair[0], *pair[1])], packages)
    edges = gradient_cells(np.array(list(pictures.values())))
    row = {file: number for number, file in enumerate(pictures)}
    classes = shuffled(pairs.items(), 17)
    gallery = edges[[row[file] for file, _ in classes]]
    probes = edges[[row[drawing] for _, drawings in classes for drawing in drawings]]
    y = np.repeat(np.arange(len(classes)), [len(drawings) for _, drawings in classes])
    aside = 900
    tested = y >= aside
    training = Population(gallery[:aside], probes[~tested], y[~tested])
    project = discriminant_axes(*training.pooled(), 64)
    return Population(
        project(gallery[aside:]), project(probes[tested]), y[tested] - aside, "cosine"
    )


def without_joiners(codes: Iterable[int]) -> tuple[int, ...]:
    """Return the code points of an emoji, without those that join others or choose a style."""
    return tuple(code for code in codes if code not in _JOINERS)


def emoji_of_font(file: Path) -> dict[tuple[int, ...], Image.Image]:
    """Return the bitmaps of a colour font, by sequence of code points."""
    from fontTools.ttLib import TTFont

    with TTFont(file) as font:
        glyph_of = {(code,): glyph for code, glyph in font.getBestCmap().items()}
        code_of = {glyph: code for (code,), glyph in sorted(glyph_of.items(), reverse=True)}
        lookups = font["GSUB"].table.LookupList.Lookup
        tables = [
            table for lookup in lookups if lookup.LookupType == 4 for table in lookup.SubTable
        ]
        for first, ligatures in [pair for table in tables for pair in table.ligatures.items()]:
            for ligature in ligatures:
                parts = first, *ligature.Component
                if all(part in code_of for part in parts):
                    glyph_of[tuple(code_of[part] for part in parts)] = ligature.LigGlyph
        bitmaps = font["CBDT"].strikeData[0]
        return {
            without_joiners(codes): Image.open(BytesIO(bitmaps[glyph].imageData))
            for codes, glyph in glyph_of.items()
            if glyph in bitmaps
        }


def gradient_cells(images: IntArray, *, cells: int = 6, directions: int = 8) -> FloatArray:
    """Return square roots of the shares of edges by direction and cell of colour images.

    Images are (n, side, side, 3), from 0 to 255. The weight of a pixel is the size of its steepest
    gradient among the three colours. It is divided between the two nearest directions, and between
    cells by a Gaussian of half a cell.
    """
    smooth = gaussian_filter(np.asarray(images, np.float32) / 255, (0, 1, 1, 0))
    down, right = np.gradient(smooth, axis=(1, 2))
    steepest = (down**2 + right**2).argmax(axis=-1)[..., None]
    down, right = (np.take_along_axis(x, steepest, -1)[..., 0] for x in (down, right))
    size = np.hypot(down, right)
    direction = np.arctan2(down, right) % np.pi / np.pi * directions
    step = images.shape[1] // cells
    shares = []
    for centre in range(directions):
        away = np.abs(direction - centre)
        weight = np.clip(1 - np.minimum(away, directions - away), 0, None)
        edges = gaussian_filter(size * weight, (0, step / 2, step / 2))
        shares.append(edges[:, step // 2 :: step, step // 2 :: step].reshape(len(images), -1))
    cell_edges = np.concatenate(shares, axis=1) + 1e-6
    return np.sqrt(cell_edges / cell_edges.sum(axis=1, keepdims=True))


def emoji_features(images: IntArray) -> FloatArray:
    """Return edges, and mean colours of 8 x 8 cells, of pictures (n, 48, 48, 3)."""
    cells = images.reshape(len(images), 8, 6, 8, 6, 3).mean(axis=(2, 4)).reshape(len(images), -1)
    return np.concatenate([gradient_cells(images), cells / 255 * _COLOUR], axis=1)


def emoji_pictures(packages: Packages) -> tuple[IntArray, IntArray, IntArray]:
    """Return pictures of the same emoji by Noto and EmojiOne, and others of Noto alone."""
    (font,) = packages.debian("fonts-noto-color-emoji").rglob("NotoColorEmoji.ttf")
    noto = emoji_of_font(font)
    drawn = packages.debian("ruby-gemojione").rglob("assets/png/*.png")
    emojione = {}
    for file in drawn:
        parts = file.stem.split("-")
        if all(re.fullmatch("[0-9A-F]{4,5}", part) for part in parts):
            emojione[without_joiners(int(part, 16) for part in parts)] = file
    shared = sorted(noto.keys() & emojione.keys())
    others = sorted(noto.keys() - emojione.keys())
    first, second, other = (
        np.array([on_white(picture) for picture in pictures])
        for pictures in (
            [noto[codes] for codes in shared],
            [Image.open(emojione[codes]) for codes in shared],
            [noto[codes] for codes in others],
        )
    )
    return first, second, other


def _emoji(packages: Packages) -> Population:
    gallery, probes, training = map(emoji_features, emoji_pictures(packages))
    project = whitened_components(training, 64)
    return Population(project(gallery), project(probes), np.arange(len(gallery)), "cosine")


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="icons",
        kind="icons in several themes",
        summary="programs from their icons in other themes; discriminant axes of edges",
        about=(
            "Classes are the drawings of programs in the icon theme Papirus. The templates are its "
            "icons of 64 pixels. The test instances are the icons of the same program in Numix "
            "Circle, Moka, Paper and Obsidian, one to four a class. A program often has several "
            "names that link to one drawing; they are one class. Programs that no other theme "
            "draws are left out. A random 900 programs are set aside for training. Some themes "
            "have one drawing for two programs of Papirus; such test instances stay. Differences "
            "are those between the themes; no noise is added. A wrong answer is another program."
        ),
        classifier=(
            "Cosine in 64 discriminant axes of histograms of the directions of edges (6 x 6 cells, "
            "8 directions), trained on the programs set aside in all five themes. Features, and "
            "the number of axes, were chosen after accuracies had been seen."
        ),
        packages=(
            "papirus-icon-theme 20230104 (Debian, GPL-3)",
            "numix-icon-theme-circle 22.11.05 (Debian, GPL-3+)",
            "moka-icon-theme 5.5.0 (Debian, CC-BY-SA-4.0 and GPL-3+)",
            "paper-icon-theme 1.5.0 (Debian, CC-BY-SA-4.0, GPL-3+ and LGPL-3)",
            "obsidian-icon-theme 3.5 (Debian, GPL-3)",
            "resvg_py 0.5.0 (PyPI, MIT; it draws the outlines)",
        ),
        make=_icons,
    ),
    Recipe(
        name="emoji",
        kind="emoji of two vendors",
        summary="emoji of another vendor; principal components of edges and colours",
        about=(
            "Classes are the emoji that EmojiOne 3 and Google's Noto Color Emoji both draw, tones "
            "of skin, families and flags included. The template is the bitmap of Noto, and the "
            "test instance is the picture of EmojiOne. Emoji that EmojiOne lacks are left out and "
            "serve for training. A few emoji, like the flags of a state and of its territory, have "
            "equal templates and stay. Differences are those between the vendors; no noise is "
            "added. A wrong answer is another emoji."
        ),
        classifier=(
            "Cosine of 64 whitened principal components of histograms of the directions of edges "
            "and of the mean colours of 8 x 8 cells, trained on the emoji of Noto left out. The "
            "weight of the colours was chosen after accuracies had been seen."
        ),
        packages=(
            "fonts-noto-color-emoji 2.042 (Debian, OFL-1.1)",
            "ruby-gemojione 3.3.0 (Debian, CC-BY-SA-4.0)",
        ),
        make=_emoji,
    ),
)
