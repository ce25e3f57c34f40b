"""A sound as numbers: how strong each band of frequencies is, on the whole and over time."""

from __future__ import annotations

import io
import struct
from itertools import pairwise

import numpy as np

MAX_SECONDS = 30  # of a sound that are listened to
BANDS, TIMES = 40, 16
_SMALL = 1e-8
_QUANTILES = (10, 50, 90, 99)


def sound_features(content: bytes) -> np.ndarray:
    """Return the numbers of a WAV or AIFF file, always as many."""
    rate, samples = _decode_aiff(content) if content[:4] == b"FORM" else _decode_wav(content)
    if not len(samples) or rate <= 0:
        raise ValueError("a sound without samples")
    signal = samples[: int(MAX_SECONDS * rate)]
    bands = _bands(signal, rate)
    overall = [np.log(len(samples) / rate), np.log(signal.std() + _SMALL)]
    overall += [float((np.diff(np.signbit(signal))).mean()) if len(signal) > 1 else 0.0]
    changes = np.abs(np.diff(bands, axis=0)).mean(axis=0) if len(bands) > 1 else np.zeros(BANDS)
    parts = [
        np.array(overall),
        bands.mean(axis=0),
        bands.std(axis=0),
        np.percentile(bands, _QUANTILES, axis=0).ravel(),
        changes,
        _shape(bands),
        _over_time(bands).ravel(),
    ]
    return np.concatenate(parts)


def _bands(signal: np.ndarray, rate: float) -> np.ndarray:
    """Return the logarithm of the power in each band (times, bands), as an ear would weigh it."""
    from scipy.signal import stft  # late: only sounds need it

    window = int(np.clip(2 ** round(np.log2(rate * 0.03)), 256, 2048))
    signal = np.pad(signal, (0, max(0, window - len(signal))))
    _, _, spectrum = stft(signal, nperseg=window, noverlap=window // 2, boundary=None)
    power = np.abs(spectrum.T) ** 2
    bands: np.ndarray = np.log(power @ _filters(rate, window).T + _SMALL)
    return bands


def _filters(rate: float, window: int) -> np.ndarray:
    """Return overlapping triangles, equally wide on the mel scale (bands, frequencies)."""
    highest = 2595 * np.log10(1 + rate / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, highest, BANDS + 2) / 2595) - 1)
    frequencies = np.linspace(0, rate / 2, window // 2 + 1)
    widths = np.maximum(np.diff(corners), rate / window)  # none so narrow that it misses all
    rise = 1 - (corners[1:-1, None] - frequencies) / widths[:-1, None]
    fall = 1 - (frequencies - corners[1:-1, None]) / widths[1:, None]
    return np.clip(np.minimum(rise, fall), 0, 1)


def _shape(bands: np.ndarray) -> np.ndarray:
    """Return mean and deviation of the cepstrum, which tells how a sound is coloured."""
    from scipy.fft import dct  # late: only sounds need it

    cepstrum = dct(bands, norm="ortho", axis=1)[:, 1:14]
    return np.concatenate([cepstrum.mean(axis=0), cepstrum.std(axis=0)])


def _over_time(bands: np.ndarray) -> np.ndarray:
    """Return the course of pairs of bands over the whole sound, without its loudness."""
    edges = np.linspace(0, len(bands), TIMES + 1).astype(int)
    pairs = bands.reshape(len(bands), BANDS // 2, 2).mean(axis=2)
    course = [pairs[a : max(b, a + 1)].mean(axis=0) for a, b in pairwise(edges)]
    relative: np.ndarray = np.array(course) - bands.mean()
    return relative


def _decode_wav(content: bytes) -> tuple[float, np.ndarray]:
    from scipy.io import wavfile  # late: only sounds need it

    rate, samples = wavfile.read(io.BytesIO(content))
    return float(rate), _mono(samples)


def _decode_aiff(content: bytes) -> tuple[float, np.ndarray]:
    """Read uncompressed AIFF: chunks of big-endian samples (Apple, AIFF 1.3, 1989)."""
    chunks, position = {}, 12
    while position + 8 <= len(content):
        name, size = struct.unpack_from(">4sI", content, position)
        chunks[name] = content[position + 8 : position + 8 + size]
        position += 8 + size + size % 2
    channels, _, bits = struct.unpack_from(">hIh", chunks[b"COMM"])
    kinds = {1: ">i1", 2: ">i2", 4: ">i4"}
    if content[8:12] != b"AIFF" or (bits + 7) // 8 not in kinds:
        raise ValueError(f"an AIFF file of {bits} bits, or compressed")
    kind = np.dtype(kinds[(bits + 7) // 8])
    data = chunks[b"SSND"][8:]
    samples = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
    samples = samples[: len(samples) // channels * channels].reshape(-1, channels)
    return _extended(chunks[b"COMM"][8:18]), _mono(samples)


def _extended(data: bytes) -> float:
    """Return a float of 80 bits: a sign and 15 bits of exponent, then 64 bits of fraction."""
    exponent, fraction = struct.unpack(">HQ", data)
    return float(fraction * 2.0 ** ((exponent & 0x7FFF) - 16383 - 63))


def _mono(samples: np.ndarray) -> np.ndarray:
    """Return one channel between -1 and 1."""
    scale = np.iinfo(samples.dtype).max if samples.dtype.kind in "iu" else 1.0
    values = samples.astype(float) / scale - (samples.dtype.kind == "u")
    return values.mean(axis=1) if values.ndim == 2 else values
