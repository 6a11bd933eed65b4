"""One file of all pictures of a series: WebP and GIF by Pillow, MP4, MKV and WebM by the program ffmpeg."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from junctura import _forks
from junctura.errors import InvalidArgument, Io, LimitExceeded, Unsupported

# Pillow has all pictures in memory: 1.5 MB each at 800 x 600.
_IMAGES_MAX = 1000
_IMAGES: dict[str, dict[str, Any]] = {".webp": {"format": "WEBP", "quality": 90}, ".gif": {"format": "GIF"}}
# Endings, and ffmpeg's names of their formats.
_VIDEOS = {".mp4": "mp4", ".mkv": "matroska", ".webm": "webm"}


class MovieFile:
    """A movie.

    Parameters
    ----------
    path
        The file; an existing one is replaced.
    rate
        Pictures a second.

    Raises
    ------
    InvalidArgument
        The ending is unknown.
    Unsupported
        The program ffmpeg is not installed, and the ending needs it.

    """

    def __init__(self, path: str | os.PathLike[str], rate: float = 10.0) -> None:
        self.path = Path(path)
        self._rate = rate
        self._ending = self.path.suffix.lower()
        if self._ending not in (*_IMAGES, *_VIDEOS):
            endings = " ".join((*_VIDEOS, *_IMAGES))
            raise InvalidArgument(str(path), f"the ending is not that of a movie: {endings}")
        if self._ending in _VIDEOS and shutil.which("ffmpeg") is None:
            cause = "ffmpeg is not installed here: apt-get install ffmpeg; .webp and .gif do not need it"
            raise Unsupported(str(path), cause)

    def write(self, pictures: Sequence[Path]) -> None:
        """Writes the movie of these pictures, at least one; it appears complete.

        Raises
        ------
        InvalidArgument
            Pictures have different sizes.
        LimitExceeded
            The format takes at most 1,000 pictures.
        Io
            ffmpeg failed.

        """
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.partial")
        try:
            if self._ending in _VIDEOS:
                self._encode(pictures, partial)
            else:
                self._save(pictures, partial)
            partial.replace(self.path)
        finally:
            partial.unlink(missing_ok=True)

    def _save(self, pictures: Sequence[Path], partial: Path) -> None:
        if len(pictures) > _IMAGES_MAX:
            cause = f"{len(pictures)} pictures, and the format takes at most {_IMAGES_MAX}: write .mp4, or use --every"
            raise LimitExceeded(str(self.path), cause)
        first, *rest = self._images(pictures)
        options = {**_IMAGES[self._ending], "append_images": rest, "duration": 1000 / self._rate, "loop": 0}
        first.save(partial, save_all=True, **options)

    def _encode(self, pictures: Sequence[Path], partial: Path) -> None:
        images = self._images(pictures)
        first = next(images)
        size = f"{first.width}x{first.height}"
        # Most encoders need an even number of pixels.
        even = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]
        source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", str(self._rate), "-i", "-"]
        words = ["ffmpeg", "-v", "error", "-y", *source, *even, "-f", _VIDEOS[self._ending], str(partial)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as encoder:
            assert encoder.stdin is not None
            assert encoder.stderr is not None
            try:
                for image in chain([first], images):
                    encoder.stdin.write(image.tobytes())
                encoder.stdin.close()
            except BrokenPipeError:
                # It has printed the reason.
                pass
            except BaseException:
                encoder.kill()
                raise
            reason = encoder.stderr.read().decode(errors="replace").strip()
        if encoder.returncode != 0:
            raise Io(str(self.path), f"ffmpeg failed with status {encoder.returncode}: {reason}")

    def _images(self, pictures: Sequence[Path]) -> Iterator[Any]:
        images = _forks.needed("PIL.Image", "mesh")
        size: tuple[int, int] | None = None
        for picture in pictures:
            with images.open(picture) as opened:
                image = opened.convert("RGB")
            size = size or image.size
            if image.size != size:
                there = f"{size[0]} x {size[1]}"
                cause = f"{image.width} x {image.height} pixels, and {pictures[0]} has {there}"
                raise InvalidArgument(str(picture), f"{cause}: draw all in one size (--redraw)")
            yield image
