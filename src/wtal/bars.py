"""How far long work is, on stderr: bars in a terminal, and a line now and then where there is none."""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from wtal.progress import Progress

Note = Callable[[Mapping[str, Any]], str]


def listed(detail: Mapping[str, Any]) -> str:
    """All that is not in the bars already, such as the losses; before them the stage of larger work.

    >>> listed({"epoch": 3, "step": 1, "steps": 8, "cls": 0.1234, "stage": "1 of 2, rskp-seed0"})
    'stage 1 of 2, rskp-seed0  cls 0.123'
    """
    shown = {name: value for name, value in detail.items() if name not in ("epoch", "step", "steps")}
    shown = {"stage": shown.pop("stage"), **shown} if "stage" in shown else shown
    return "  ".join(f"{n} {value:.3f}" if isinstance(value, float) else f"{n} {value}" for n, value in shown.items())


@contextmanager
def showing(what: str, *, main: str | None = None, note: Note = listed) -> Iterator[Progress]:
    """A bar on stderr with the time left, a second one for what is going on, and a note below them.

    The first bar is about the step `main`, or about any step if that is None; the second one about the other steps, and
    the parts of the main one that its detail counts as `step` of `steps`. Without a terminal there are lines instead,
    seldom enough for a log.
    """
    if not sys.stderr.isatty():
        yield Lines(what, main=main, note=note)
        return
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class WithNote(RichProgress):
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
    with WithNote(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=600) as bars:
        outer = bars.add_task(what, total=None, count="", visible=False)
        within = bars.add_task("", total=None, count="", visible=False)

        class Bars(_Shown):
            def show(self, note: str, inner: tuple[str, float, float] | None, *, anew: bool) -> None:
                bars.note = note
                if anew:
                    bars.reset(outer, total=self.total)
                if self.total is None:
                    bars.update(outer, visible=True)
                else:
                    count = f"{self.done:.0f} of {self.total:.0f}"
                    bars.update(outer, completed=self.done, total=self.total, count=count, visible=True)
                if inner is not None:
                    name, some, of = inner
                    count = f"{some:.0f} of {of:.0f}"
                    bars.update(within, description=name, completed=some, total=of, count=count, visible=True)

        yield Bars(what, main=main, note=note)


class _Shown(ABC):
    """The hook's calls, sorted into what the first bar shows, what the second one does, and a note."""

    def __init__(self, what: str, *, main: str | None = None, note: Note = listed) -> None:
        self.what, self.done = what, 0.0
        self.total: float | None = None
        self._main, self._note = main, note

    def __call__(self, step: str, completed: float, total: float, detail: Mapping[str, Any], /) -> None:
        inner, anew = None, False
        if self._main in (None, step):
            anew = completed == 0 < self.done  # the same work once more, such as with the next run
            self.done, self.total = completed, max(total, completed)
            if "steps" in detail:
                inner = step, detail["step"], detail["steps"]
        else:
            inner = step, completed, total
        self.show(self._note(detail), inner, anew=anew)

    @abstractmethod
    def show(self, note: str, inner: tuple[str, float, float] | None, *, anew: bool) -> None:
        """Show `self.done` of `self.total`, which is None if not known yet, a note, and what is within, by name."""


class Lines(_Shown):
    """The same in lines: after 10 seconds, and then at growing distances of up to a minute."""

    def __init__(
        self, what: str, *, main: str | None = None, note: Note = listed, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(what, main=main, note=note)
        self._clock = clock
        self._began = self._last = clock()
        self._wait_s, self._first = 10.0, -1.0

    def show(self, note: str, inner: tuple[str, float, float] | None, *, anew: bool) -> None:
        """Say it if it is time to."""
        now = self._clock()
        if anew:
            self._began, self._first = now, -1.0
        if self._first < 0 and self.total is not None:
            self._first = self.done  # what was there before, such as epochs of a resumed run
        if now - self._last < self._wait_s:
            return
        self._last, self._wait_s = now, min(2 * self._wait_s, 60.0)
        said = [] if self.total is None else [self._outer(self.total, now - self._began)]
        if inner is not None:
            said.append(f"{inner[0]} {inner[1]:.0f} of {inner[2]:.0f}")
        print(f"{self.what}: {'; '.join([*said, *([note] if note else [])])}", file=sys.stderr, flush=True)

    def _outer(self, total: float, seconds: float) -> str:
        worked = self.done - self._first
        left = f", about {_time(seconds * (total - self.done) / worked)} left" if worked > 0 else ""
        return f"{self.done:.1f} of {total:.0f} ({100 * self.done / max(total, 1e-9):.0f} %){left}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
