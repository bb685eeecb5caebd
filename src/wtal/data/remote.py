"""Stores in object storage, read through fsspec: whole files are fetched when they are first needed, and kept here.

They are kept under $WTAL_CACHE, by default ~/.cache/wtal, named by what identifies them there, so that a file that was
replaced is fetched again. Past $WTAL_CACHE_GB (default 50) those that were used longest ago make room.
"""

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wtal.errors import InputError, MissingExtraError
from wtal.files import written_whole
from wtal.reading import refusing

_URL = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)")


def url_of(path: Path | str) -> str | None:
    """The URL that a path stands for, if it is one; pathlib makes one slash of two.

    >>> url_of(Path("s3://bucket/store")), url_of("file:///data/store"), url_of("data/store")
    ('s3://bucket/store', 'file:///data/store', None)
    """
    found = _URL.fullmatch(path.as_posix() if isinstance(path, Path) else path)
    if found is None:
        return None
    scheme, rest = found.groups()
    return f"{scheme}://{'/' if scheme == 'file' else ''}{rest}"


@dataclass(frozen=True)
class Remote:
    """A folder at a URL such as s3://bucket/store; it is only read."""

    url: str

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        with refusing(f"{self.url}/{name}", "cannot be looked for"):
            filesystem, root = self._opened()
            return bool(filesystem.isfile(f"{root}/{name}"))

    def fetch(self, name: str) -> Path:
        """A copy of this file on this machine, fetched unless it is there."""
        with refusing(f"{self.url}/{name}", "cannot be fetched"):
            filesystem, root = self._opened()
            there = f"{root}/{name}"
            token = hashlib.blake2b(f"{self.url} {filesystem.ukey(there)}".encode(), digest_size=8).hexdigest()
            local = cache_folder() / f"{token}-{name}"
            if local.exists():
                os.utime(local)  # the last to make room
                return local
            _make_room(filesystem.size(there), keep=local)
            with filesystem.open(there, "rb") as source, written_whole(local, "wb") as file:
                shutil.copyfileobj(source, file, 2**24)
            return local

    def _opened(self) -> tuple[Any, str]:
        """The file system, and the folder's path in it."""
        try:
            from fsspec.core import url_to_fs
        except ModuleNotFoundError as error:
            raise MissingExtraError("fsspec", "remote") from error
        try:
            filesystem, root = url_to_fs(self.url, use_listings_cache=False)
        except ImportError as error:
            if self.url.startswith("s3:"):
                raise MissingExtraError("s3fs", "remote") from error
            raise InputError(f"{self.url}: {error}") from error
        return filesystem, root.rstrip("/")


def cache_folder() -> Path:
    """Where fetched files are kept."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wtal"
    return Path(os.environ.get("WTAL_CACHE") or usual)


def _make_room(size: int, *, keep: Path) -> None:
    limit = os.environ.get("WTAL_CACHE_GB") or "50"
    try:
        left = float(limit) * 1e9 - size
    except ValueError:
        raise InputError(f"WTAL_CACHE_GB must be a number of gigabytes, got {limit!r}") from None
    keep.parent.mkdir(parents=True, exist_ok=True)
    files = [(entry.stat(), entry.path) for entry in os.scandir(keep.parent) if entry.is_file()]
    for known, path in sorted(files, key=lambda file: -file[0].st_mtime):
        left -= known.st_size
        if left < 0 and not path.endswith(".partial"):  # one that is being fetched
            Path(path).unlink(missing_ok=True)
