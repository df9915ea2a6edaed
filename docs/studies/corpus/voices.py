"""Sounds of words from speech synthesisers."""

import ctypes
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.signal import resample_poly

from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray
from studies.corpus.packages import Packages

RATE = 16_000
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_ELSEWHERE = "populations of spoken words are made on Debian, on x86-64"
# Numbers of espeak-ng's interface, speak_lib.h.
_SYNCHRONOUS, _UTF_8, _IPA, _WORDS_A_MINUTE, _BY_CHARACTER = 2, 1, 2, 1, 1
_ON_SOUND = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


def espeak(
    packages: Packages, words: Iterable[str], voice: str, words_a_minute: int = 175
) -> list[FloatArray]:
    """Return the sounds of words spoken by a voice of espeak-ng, at 16 kHz."""
    sounds, heard = [], list[Any]()

    @_ON_SOUND
    def hear(wave: Any, number: int, events: Any) -> int:
        if number > 0:
            heard.append(np.ctypeslib.as_array(wave, (number,)) / 2**15)
        return 0

    with _espeak(packages, voice) as (library, rate):
        library.espeak_SetParameter(_WORDS_A_MINUTE, words_a_minute, 0)
        library.espeak_SetSynthCallback(hear)
        for word in words:
            heard.clear()
            text = word.encode()
            library.espeak_Synth(text, len(text) + 1, 0, _BY_CHARACTER, 0, _UTF_8, None, None)
            sounds.append(resample_poly(np.concatenate(heard), RATE, rate))
    return sounds


def espeak_phonemes(packages: Packages, words: Iterable[str], voice: str) -> list[str]:
    """Return the pronunciations of words by espeak-ng in the International Phonetic Alphabet."""
    spoken = []
    separated = _IPA | ord(" ") << 8
    with _espeak(packages, voice) as (library, _):
        for word in words:
            rest, phrases = ctypes.c_char_p(word.encode()), []
            while rest.value is not None:  # a call reads one phrase and moves behind it
                phonemes = library.espeak_TextToPhonemes(ctypes.byref(rest), _UTF_8, separated)
                phrases.append(phonemes.decode().strip())
            spoken.append(" ".join(phrases))
    return spoken


@contextmanager
def _espeak(packages: Packages, voice: str) -> Iterator[tuple[Any, int]]:
    """Load espeak-ng with a voice; yield the library and its sampling rate."""
    folder = packages.pypi("espeakng_loader", "0.2.4") / "espeakng_loader"
    with TemporaryDirectory() as scratch:
        # The speech of espeak-ng depends on earlier words. A fresh copy of the library has none.
        copied = shutil.copy(folder / "libespeak-ng.so.1", scratch)
        try:
            library = ctypes.CDLL(copied)
        except OSError as error:
            raise DataError(f"espeak-ng does not run here ({error}); {_ELSEWHERE}") from None
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, str(folder).encode(), 0)
    if rate <= 0 or library.espeak_SetVoiceByName(voice.encode()):
        raise DataError(f"espeak-ng does not find the voice {voice} in {folder}")
    try:
        yield library, rate
    finally:
        library.espeak_Terminate()


def flite(packages: Packages, words: Iterable[str], voice: str) -> list[FloatArray]:
    """Return the sounds of words spoken by a voice of flite, at 16 kHz."""
    program = packages.debian("flite") / f"usr/bin/flite_cmu_us_{voice}"
    environment = {"LD_LIBRARY_PATH": str(packages.debian("libflite1") / _LIBRARIES)}
    sounds = []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "word.wav"
        for word in words:
            command = [str(program), "-t", word, "-o", str(file)]
            try:
                subprocess.run(command, env=environment, capture_output=True, check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise DataError(f"{program} does not run here ({error}); {_ELSEWHERE}") from None
            sounds.append(_samples(file.read_bytes()))
    return sounds


def _samples(wave: bytes) -> FloatArray:
    """Return the sound of a .wav file, resampled to 16 kHz."""
    rate = int.from_bytes(wave[24:28], "little")
    sound = np.frombuffer(wave[wave.find(b"data") + 8 :], "<i2") / 2**15
    return sound if rate == RATE else resample_poly(sound, RATE, rate)
