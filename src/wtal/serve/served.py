"""One run as it is served: its model, its videos, what was found in each, and what the model sees on request."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from wtal.annotations import Annotations
from wtal.data.store import Store
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.progress import Progress, silent, tracked
from wtal.sight import Sight
from wtal.training.run import Run
from wtal.view.build import store_of
from wtal.view.payload import Footage, changed, payload
from wtal.view.taught import Taught

T = TypeVar("T")


class Recent(Generic[T]):
    """The values that were asked for last; what is being made is waited for, not made twice."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Any, tuple[threading.Lock, list[T]]] = OrderedDict()

    def __call__(self, key: Any, make: Callable[[], T]) -> T:
        """The value of a key, made if it is not among them."""
        with self._lock:
            making, value = self._kept.setdefault(key, (threading.Lock(), []))
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        with making:
            if not value:
                value.append(make())
            return value[0]


@dataclass(frozen=True, eq=False)
class Served:
    """A finished run over a store of features."""

    name: str
    run: Run
    localizer: Localizer
    store: Store
    found: Mapping[str, Instances]
    """What was found in each video, in seconds."""
    _sights: Recent[Sight] = field(default_factory=lambda: Recent(64))
    _looking: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, path: Path, name: str, features: Path | None = None, *, progress: Progress = silent) -> "Served":
        """The run in a folder; videos of the store that it has no predictions of are localized now.

        Args:
            path: A folder that wtal train made.
            name: What to call it.
            features: Its store, if that is no longer where the run found it.
            progress: Hears of the videos that are localized.
        """
        run, localizer = Run(path), Localizer.load(path)
        store = store_of(run, features)
        if store.classes != localizer.classes or store.dimensions != localizer.card.dimensions:
            raise InputError(f"{store.path} has other classes or features than the model of {path}; see --features")
        found = {n: one for n, one in (run.predictions(store.classes) or {}).items() if n in store.records}
        missing = [n for n in store.names() if n not in found]
        for n in tracked(missing, "localizing", progress) if missing else ():
            clock, duration_s = store.timebase(n), store.duration_s(n)
            found[n] = localizer(store.features(n), clock, duration_s=duration_s)
        return cls(name, run, localizer, store, found)

    @cached_property
    def truth(self) -> Annotations | None:
        """The true instances, where they are known."""
        return self.store.truth() if self.store.has_truth else None

    @cached_property
    def _taught(self) -> Taught:
        return Taught(self.run.path, self.localizer.classes)

    def payload(self, name: str, settings: Mapping[str, Any], url: str | None, kind: str | None) -> dict[str, Any]:
        """What the page shows of a video, by the run's own settings or with others in place of some.

        Of a detector and its teachers, the settings are those of the first teacher, whose curves are shown.
        """
        footage = replace(Footage.of_store(self.store, name, self.truth), url=url, type=kind)

        def look() -> Sight:
            with self._looking:  # a pass of the model uses all processors anyway
                return self.localizer.look(name, footage.features)

        sight = self._sights(name, look)
        if settings:
            sight = with_settings(sight, settings)
        return payload(self.localizer, footage, run=self.name, sight=sight, taught=self._taught)


def with_settings(sight: Sight, settings: Mapping[str, Any]) -> Sight:
    """The same sight with other settings of the model, or of the first teacher if it is a detector's."""
    if sight.teachers:
        return replace(sight, teachers=(with_settings(sight.teachers[0], settings), *sight.teachers[1:]))
    return replace(sight, proposer=changed(sight.proposer, **settings))
