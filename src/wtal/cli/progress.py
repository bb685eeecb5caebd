"""The progress bar that commands wrap their loops with."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def progress(what: str) -> Callable[[Iterable[T]], Iterable[T]]:
    """A bar over videos, on stderr, to wrap a loop with."""

    def track(videos: Iterable[T]) -> Iterator[T]:
        from rich.console import Console
        from rich.progress import track as bar

        yield from bar(list(videos), description=what, console=Console(stderr=True), transient=True)

    return track
