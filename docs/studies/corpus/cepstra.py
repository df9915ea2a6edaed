"""Sounds as vectors: mel-frequency cepstra over a fixed number of frames."""

import numpy as np
from scipy.fft import dct, rfft

from classex_bayes.typing import FloatArray

N_FRAMES = 20
N_COEFFICIENTS = 13
_WINDOW, _STEP, _FFT, _BANDS = 400, 160, 512, 26  # 25 ms and 10 ms at 16 kHz


def mel_filters(rate: int, n_bands: int = _BANDS, n_fft: int = _FFT) -> FloatArray:
    """Return triangular filters equally spaced in mel, shape (n_bands, n_fft / 2 + 1)."""
    mels = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), n_bands + 2)
    corners = 700 * (10 ** (mels / 2595) - 1)
    frequencies = np.arange(n_fft // 2 + 1) * rate / n_fft
    low, mid, high = (corners[i : i + n_bands, None] for i in range(3))
    rise, fall = (frequencies - low) / (mid - low), (high - frequencies) / (high - mid)
    return np.clip(np.minimum(rise, fall), 0, None)


def voiced(sound: FloatArray, below: float = 40.0) -> FloatArray:
    """Return the sound from the first to the last 10 ms within `below` dB of the loudest."""
    blocks = sound[: sound.size // _STEP * _STEP].reshape(-1, _STEP)
    power = (blocks**2).mean(1)
    (loud,) = np.nonzero(power > power.max() * 10 ** (-below / 10))
    return sound[loud[0] * _STEP : (loud[-1] + 1) * _STEP]


def cepstra(sound: FloatArray, rate: int) -> FloatArray:
    """Return mel-frequency cepstra, with a row for every 10 ms."""
    emphasised = np.append(sound[:1], sound[1:] - 0.97 * sound[:-1])
    emphasised = np.pad(emphasised, (0, max(0, _WINDOW - sound.size)))
    frames = np.lib.stride_tricks.sliding_window_view(emphasised, _WINDOW)[::_STEP]
    power = np.abs(rfft(frames * np.hamming(_WINDOW), _FFT)) ** 2
    bands = np.log(power @ mel_filters(rate).T + 1e-6)
    return dct(bands, norm="ortho")[:, :N_COEFFICIENTS]


def stretched(rows: FloatArray, n: int) -> FloatArray:
    """Interpolate rows at `n` equally spaced times from the first to the last."""
    places = np.linspace(0, len(rows) - 1, n)
    before = np.minimum(places.astype(int), max(len(rows) - 2, 0))
    after = np.minimum(before + 1, len(rows) - 1)
    part = (places - before)[:, None]
    return (1 - part) * rows[before] + part * rows[after]


def vector(sound: FloatArray, rate: int) -> FloatArray:
    """Return the centred cepstra of a word at 20 equally spaced times: 260 numbers."""
    rows = cepstra(voiced(sound), rate)
    return stretched(rows - rows.mean(0), N_FRAMES).ravel()
