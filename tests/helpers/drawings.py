"""Small pictures and sounds that a light model can tell apart, and files of them."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
from PIL import Image

KINDS = ("checks", "rings", "stripes")
RATE = 4000  # samples a second


def draw(kind: str, random: np.random.Generator, size: int = 40) -> np.ndarray:
    """Return a noisy pattern of one kind (size, size, 3) in random colours, scale and phase."""
    rows, columns = np.mgrid[0:size, 0:size] - random.uniform(size / 4, 3 * size / 4, (2, 1, 1))
    scale = random.uniform(0.6, 1.2)
    pattern = {
        "checks": np.sign(np.sin(rows * scale) * np.sin(columns * scale)),
        "rings": np.sin(np.hypot(rows, columns) * scale),
        "stripes": np.sin((rows + 0.3 * columns) * scale),
    }[kind]
    back, front = random.uniform(0, 255, (2, 3))
    picture = np.where(pattern[..., None] > 0, front, back) + random.normal(0, 25, (size, size, 3))
    return picture.clip(0, 255).astype(np.uint8)


def encode(pixels: np.ndarray, form: str = "PNG") -> bytes:
    """Return a picture as a file's content."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


def sing(rising: bool, random: np.random.Generator, seconds: float = 0.6) -> np.ndarray:
    """Return a tone that rises or falls within noise, of random pitch, as 16-bit samples."""
    time = np.arange(int(RATE * seconds)) / RATE
    low, high = random.uniform(300, 500), random.uniform(900, 1300)
    start, end = (low, high) if rising else (high, low)
    phase = 2 * np.pi * (start * time + (end - start) * time**2 / (2 * seconds))
    sound = np.sin(phase + random.uniform(0, 6)) + random.normal(0, 0.5, len(time))
    return (sound * 8000).clip(-32768, 32767).astype(np.int16)


def encode_wav(samples: np.ndarray) -> bytes:
    """Return a sound as the content of a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


def encode_aiff(samples: np.ndarray) -> bytes:
    """Return a sound as the content of an AIFF file; its rate is a float of 80 bits."""
    exponent = RATE.bit_length() - 1
    rate = struct.pack(">HQ", 16383 + exponent, RATE << (63 - exponent))
    common = struct.pack(">hIh", 1, len(samples), 16) + rate
    data = struct.pack(">II", 0, 0) + samples.astype(">i2").tobytes()
    chunks = [(b"COMM", common), (b"NAME", b"odd"), (b"SSND", data)]
    body = b"AIFF" + b"".join(
        name + struct.pack(">I", len(content)) + content + b"\0" * (len(content) % 2)
        for name, content in chunks
    )
    return b"FORM" + struct.pack(">I", len(body)) + body
