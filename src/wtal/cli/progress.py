"""How far a command is: bars in a terminal, and a line now and then where there is none."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")


class Show(Protocol):
    """What a command calls when it has got further."""

    def __call__(
        self, done: float, total: float, note: str = "", inner: tuple[str, float, float] | None = None
    ) -> None:
        """`done` of `total`, a note about what is going on, and how far that is, by name."""


@contextmanager
def showing(what: str) -> Iterator[Show]:
    """A bar on stderr with the time left, a second one for what is going on, and a note below them.

    Without a terminal there are lines instead, seldom enough for a log.
    """
    if not sys.stderr.isatty():
        yield Lines(what)
        return
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Bars(Progress):
        note = ""

        def get_renderables(self) -> Iterable[RenderableType]:
            yield self.make_tasks_table(self.tasks)
            if self.note:  # on lines of its own: beside the bars there is no room for it in 80 columns
                yield Text(self.note, overflow="fold")

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=600) as bars:
        outer = bars.add_task(what, total=None, count="")
        within = bars.add_task("", total=None, count="", visible=False)

        def show(done: float, total: float, note: str = "", inner: tuple[str, float, float] | None = None) -> None:
            bars.note = note
            bars.update(outer, completed=done, total=total, count=f"{done:.0f} of {total:.0f}")
            if inner is not None:
                name, some, of = inner
                count = f"{some:.0f} of {of:.0f}"
                bars.update(within, description=name, completed=some, total=of, count=count, visible=True)

        yield show


class Lines:
    """The same in lines: after 10 seconds, and then at growing distances of up to a minute."""

    def __init__(self, what: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock = what, clock
        self._began = self._last = clock()
        self._wait_s, self._first = 10.0, -1.0

    def __call__(
        self, done: float, total: float, note: str = "", inner: tuple[str, float, float] | None = None
    ) -> None:
        """Say it if it is time to."""
        now = self._clock()
        if self._first < 0:
            self._first = done  # what was there before, such as epochs of a resumed run
        if now - self._last < self._wait_s:
            return
        self._last, self._wait_s = now, min(2 * self._wait_s, 60.0)
        worked = done - self._first
        left = f", about {_time((now - self._began) * (total - done) / worked)} left" if worked > 0 else ""
        phase = f"; {inner[0]} {inner[1]:.0f} of {inner[2]:.0f}" if inner is not None else ""
        said = f"{self._what}: {done:.1f} of {total:.0f} ({100 * done / max(total, 1e-9):.0f} %){left}{phase}"
        print(f"{said}; {note}" if note else said, file=sys.stderr, flush=True)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def progress(what: str) -> Callable[[Iterable[T]], Iterable[T]]:
    """A bar over videos, to wrap a loop with."""

    def track(videos: Iterable[T]) -> Iterator[T]:
        everything = list(videos)
        with showing(what) as show:
            for done, video in enumerate(everything):
                show(done, len(everything))
                yield video

    return track
