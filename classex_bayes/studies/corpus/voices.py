"""Words spoken by the synthesisers of Debian, as sound."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.signal import resample_poly

from classex_bayes.exceptions import DataError
from classex_bayes.studies.corpus.packages import Packages
from classex_bayes.typing import FloatArray

RATE = 16_000
_LIBRARIES = "usr/lib/x86_64-linux-gnu"


def espeak(packages: Packages, words: Iterable[str], *options: str) -> list[FloatArray]:
    """Sounds of words spoken by espeak-ng, at 16 kHz; options name the voice and its speed."""
    return [_samples(_espeak(packages, "--stdout", *options, "--", word)) for word in words]


def espeak_phonemes(packages: Packages, words: Iterable[str], voice: str) -> list[str]:
    """Pronunciations of words in the International Phonetic Alphabet, by espeak-ng."""
    listed = "\n\n".join(words).encode()  # a paragraph each
    text = _espeak(packages, "-q", "--ipa", "--sep= ", "-v", voice, "--stdin", stdin=listed)
    return text.decode().splitlines()


def flite(packages: Packages, words: Iterable[str], voice: str) -> list[FloatArray]:
    """Sounds of words spoken by a voice of flite, at 16 kHz."""
    program = packages.debian("flite") / f"usr/bin/flite_cmu_us_{voice}"
    environment = {"LD_LIBRARY_PATH": str(packages.debian("libflite1") / _LIBRARIES)}
    sounds = []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "word.wav"
        for word in words:
            _run([str(program), "-t", word, "-o", str(file)], environment)
            sounds.append(_samples(file.read_bytes()))
    return sounds


def _espeak(packages: Packages, *options: str, stdin: bytes | None = None) -> bytes:
    """Standard output of espeak-ng."""
    names = ("libespeak-ng1", "libpcaudio0", "libsonic0")
    environment = {
        "LD_LIBRARY_PATH": ":".join(str(packages.debian(name) / _LIBRARIES) for name in names),
        "ESPEAK_DATA_PATH": str(packages.debian("espeak-ng-data") / _LIBRARIES),
    }
    program = packages.debian("espeak-ng") / "usr/bin/espeak-ng"
    return _run([str(program), *options], environment, stdin)


def _run(command: list[str], environment: dict[str, str], stdin: bytes | None = None) -> bytes:
    """Standard output of a program out of a package."""
    try:
        done = subprocess.run(
            command, env=environment, input=stdin, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise DataError(
            f"{command[0]} does not run here ({error}); populations of spoken words are made on "
            "Debian, on x86-64"
        ) from None
    return done.stdout


def _samples(wave: bytes) -> FloatArray:
    """Sound of a .wav file, resampled to 16 kHz."""
    # A program that writes to a pipe cannot know the length that the header should state.
    data = wave.find(b"data")
    rate = int.from_bytes(wave[24:28], "little")
    sound = np.frombuffer(wave[data + 8 :], "<i2").astype(float) / 2**15
    return sound if rate == RATE else resample_poly(sound, RATE, rate)
