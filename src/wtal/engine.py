"""Engines: where a function is run over many items. Here, or on the machines of a Ray cluster; the rest is the same."""

import logging
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, TypeVar

from wtal.errors import InputError, MissingExtraError

T = TypeVar("T")
R = TypeVar("R")
#: takes some of the items and gives the results of each, in their order
Task = Callable[[Sequence[T]], Generator[R, None, None]]
#: how often a task is begun again whose worker or machine has died
RETRIES = 3


class Engine:
    """This process: what runs a task over items unless another engine is asked for."""

    #: whether tasks run in other processes, which take nothing from here but what can be pickled
    remote = False

    def stream(self, task: Task[T, R], items: Sequence[T], *, chunk: int = 1) -> Generator[R, None, None]:  # noqa: ARG002
        """The results of all items in order, as they come.

        Args:
            task: What is done; what it does to an item depends on nothing but the item. Here it gets all items at
                once, and may work on several.
            items: What it is done to.
            chunk: How many items go to another process at a time.
        """
        return task(items)

    def ready(self) -> "Engine":
        """The same; refused if it cannot be reached."""
        return self


LOCAL = Engine()


@dataclass(frozen=True)
class Ray(Engine):
    """A Ray cluster; without an address, one that is started on this machine for as long as this process lives.

    No more tasks are under way than twice what the cluster can run at once, so that memory stays flat for any number
    of items. A task whose worker or machine dies is begun again elsewhere; nothing else is lost.
    """

    address: str | None = None
    remote = True

    def stream(self, task: Task[T, R], items: Sequence[T], *, chunk: int = 1) -> Generator[R, None, None]:
        """The results of all items in order, as they come."""
        ray = self._ray()
        threads = _threads(ray)
        run: Any = ray.remote(num_cpus=threads, num_gpus=_gpus(ray), max_retries=RETRIES)(_run)
        shared = ray.put(task)  # once, whatever the number of items
        todo = iter([items[start : start + chunk] for start in range(0, len(items), chunk)])
        waiting = deque[Any]()
        try:
            while True:
                most = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)) // threads)
                while len(waiting) < most and (some := next(todo, None)) is not None:
                    waiting.append((run.remote(shared, some, threads), some))
                if not waiting:
                    return
                yield from _result(ray, *waiting.popleft())
        finally:
            for reference, _ in waiting:
                ray.cancel(reference, force=True)

    def ready(self) -> "Ray":
        """The same; refused if it cannot be reached."""
        self._ray()
        return self

    def _ray(self) -> Any:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise MissingExtraError("ray", "ray") from error
        if not ray.is_initialized():
            try:
                ray.init(
                    address=self.address, log_to_driver=False, include_dashboard=False, logging_level=logging.WARNING
                )
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise InputError(f"`address='{self.address}'`: no Ray cluster answers there ({error})") from error
        return ray


def _threads(ray: Any) -> int:
    """As many threads as a task would have here, so that it computes the same bits; if a machine has so many."""
    torch = sys.modules.get("torch")
    wanted = 1 if torch is None else torch.get_num_threads()
    largest = max((node["Resources"].get("CPU", 1) for node in ray.nodes() if node["Alive"]), default=1)
    return max(1, min(int(wanted), int(largest)))


def _gpus(ray: Any) -> int:
    torch = sys.modules.get("torch")
    return int(torch is not None and torch.cuda.is_available() and ray.cluster_resources().get("GPU", 0) > 0)


def _run(task: Task[T, R], items: Sequence[T], threads: int) -> list[R]:
    """What a worker does."""
    if (torch := sys.modules.get("torch")) is not None:  # it came with the task
        torch.set_num_threads(threads)
    return list(task(items))


def _result(ray: Any, reference: Any, items: Sequence[Any]) -> list[Any]:
    try:
        return list(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, Exception) else error from None
    except ray.exceptions.RayError as error:
        said = str(error).strip().splitlines()[0]
        raise InputError(f"{items[0]}: its worker died {RETRIES + 1} times ({said}); what is done is kept") from error


@dataclass(frozen=True)
class EngineOptions:
    """Where the work is done."""

    engine: Literal["local", "ray"] = "local"
    """This process, or a Ray cluster whose machines all see the same files."""
    address: str | None = None
    """Of a Ray cluster that is running, such as auto or ray://host:10001; by default one is started here."""

    def open(self) -> Engine:
        """The engine."""
        if self.engine == "ray":
            if find_spec("ray") is None:
                raise MissingExtraError("ray", "ray")
            return Ray(self.address)
        if self.address is not None:
            raise InputError(f"`address='{self.address}'` is of a Ray cluster: say `engine='ray'` too")
        return LOCAL
