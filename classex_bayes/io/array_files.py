"""Arrays in .npz and .npy files and labels in text; no pickle is ever loaded."""

import gzip
import io
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from classex_bayes.exceptions import DataError

STDIN = Path("-")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn any exception of a library for a damaged file into one error that names the file."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except ImportError:
        raise
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        if isinstance(error, UnicodeDecodeError):
            reason = f"expected text in UTF-8; {reason}"
        elif isinstance(error, ValueError) and path.suffix in (".npz", ".npy"):
            reason += "; objects are never loaded, text is stored by .astype(str)"
        raise DataError(f"{path}: not a readable {path.suffix} file ({reason})") from None


def content(path: Path) -> bytes:
    """Bytes of a file, or of standard input for "-", decompressed if they were compressed."""
    read = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    return gzip.decompress(read) if read.startswith(b"\x1f\x8b") else read


def ending_of(path: Path) -> str:
    """Ending of a file in lower case, but for .gz; that of standard input is .csv."""
    return ".csv" if path == STDIN else Path(path.name.lower().removesuffix(".gz")).suffix


def read_npz(path: Path, wanted: Collection[str]) -> dict[str, Any]:
    """Read the arrays of wanted names in an .npz file; others are None."""
    with readable(path), path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        return {name: archive[name] if name in wanted else None for name in archive.files}


def read_npy(path: Path, mapped: bool) -> Any:
    """Read the array of an .npy file, memory-mapped or whole."""
    with readable(path):
        return np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)


def read_text(path: Path, names: Iterable[Any]) -> Any:
    """Labels of a .txt file, one a line."""
    with readable(path):
        text = io.StringIO(content(path).decode("utf-8-sig"), newline=None)  # any end of lines
        lines = np.array(text.read().split("\n"))
    lines = np.char.strip(lines[:-1] if lines[-1] == "" else lines)
    if (lines == "").any():
        raise DataError(
            f"{path}: expected one label per line, found none in line "
            f"{int(np.argmax(lines == '')) + 1}"
        )
    return names_or_numbers(lines, names)


def names_or_numbers(labels: Any, names: Iterable[Any]) -> Any:
    """Labels as text where they are among the names or not all are whole numbers, else numbers."""
    text_names = {name for name in names if isinstance(name, str)}
    if text_names.issuperset(labels.tolist()):
        return labels
    whole = np.char.isdecimal(np.char.lstrip(labels, "+-")).all()
    try:
        # NumPy's savetxt writes 2 as 2.000000000000000000e+00.
        numbers = labels.astype(np.int64 if whole else np.float64)
    except (ValueError, OverflowError):
        return labels
    return numbers if np.all(np.isfinite(numbers) & (numbers == np.rint(numbers))) else labels


def described(arrays: Mapping[str, Any]) -> str:
    """Names and shapes."""
    shapes = ((name, getattr(array, "shape", ())) for name, array in arrays.items())
    return listed(f"{name} {shape}" if shape else name for name, shape in shapes) or "nothing"


def listed(names: Iterable[Any]) -> str:
    """Names for a message, of many the first ones."""
    return shorten(", ".join(map(str, names)), 300, placeholder=" ...")
