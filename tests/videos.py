"""Small videos whose pictures say which one they are: picture i is grey of brightness 2·i (± coding error)."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np


def write_video(
    path: Path,
    brightness: Sequence[float],
    *,
    fps: float = 25,
    size: tuple[int, int] = (64, 48),
    times_s: Sequence[float] | None = None,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    sound_s: float = 0.0,
    marked_corner: bool = False,
) -> Path:
    """A video of uniform pictures; `times_s` gives each its own presentation time. A marked corner is white."""
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=Fraction(fps).limit_denominator(1001))
        stream.width, stream.height = size
        stream.pix_fmt = pix_fmt
        tick = Fraction(1, 12800) if path.suffix != ".avi" else 1 / Fraction(fps)  # AVI has no times but the rate
        stream.time_base = stream.codec_context.time_base = tick
        sound = container.add_stream("aac", rate=16000, layout="mono") if sound_s else None
        for index, grey in enumerate(brightness):
            pixels = np.full((size[1], size[0], 3), round(grey), np.uint8)
            if marked_corner:
                pixels[: size[1] // 2, : size[0] // 2] = 255
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts = round((times_s[index] if times_s is not None else index / fps) / tick)
            frame.time_base = tick
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
        if sound is not None:
            for index in range(int(sound_s * 16000) // 1024):
                noise = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
                noise.sample_rate, noise.pts = 16000, index * 1024
                container.mux(sound.encode(noise))
            container.mux(sound.encode())
    return path


def brightness_of(pictures) -> list[int]:
    """Which source picture each one shows."""
    return [round(float(np.median(picture.pixels)) / 2) for picture in pictures]
