"""Several training processes as one: each takes its share of a step's videos, and gradients are summed.

Start them with `torchrun --nproc-per-node N --no-python -- wtal train …`, on each machine if there are several. Losses
are sums over videos and dropout follows the video, so the result is that of one process with the same step, but for the
rounding of sums. Only the leading process looks into the run's folder, so that others need not see it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed, nn

T = TypeVar("T")


@dataclass(frozen=True)
class Share:
    """A process's part of a step's videos.

    With more processes than videos some process has none. It goes through the shortest one all the same, with losses
    that count 0, because it must be there when processes exchange what they have.
    """

    videos: list[int]
    places: list[int]
    """Where they stand among the step's videos."""
    counts: float


@dataclass(frozen=True)
class Group:
    """The processes that train together; by default there is one."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def share(self, numbers: Sequence[int], lengths: Sequence[int]) -> "Share":
        """This process's part of a step's videos, by their numbers of snippets: nobody is to wait for long.

        The longest video goes to the process that has the least so far, then the next longest, and so on.

        >>> [Group(rank, 2).share([5, 6, 7], [40, 90, 40]).videos for rank in range(2)]
        [[6], [5, 7]]
        >>> Group(1, 2).share([5], [90])
        Share(videos=[5], places=[0], counts=0.0)
        """
        loads, mine = [0] * self.size, []
        for place in sorted(range(len(numbers)), key=lambda place: -lengths[place]):
            least = loads.index(min(loads))
            loads[least] += lengths[place]
            if least == self.rank:
                mine.append(place)
        places = sorted(mine) or [min(range(len(numbers)), key=lengths.__getitem__)]
        return Share([numbers[place] for place in places], places, 1.0 if mine else 0.0)

    def part(self, sizes: Sequence[int]) -> slice:
        """Which of consecutive pieces of work fall to this process, by their sizes.

        >>> [Group(rank, 3).part([4, 1, 1, 4, 2]) for rank in range(3)]
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
        """
        low, high = max(sizes, default=0), sum(sizes)
        while low < high:  # the least size that all parts can keep to
            middle = (low + high) // 2
            low, high = (low, middle) if len(_cuts(sizes, middle)) <= self.size else (middle + 1, high)
        cuts = [0, *_cuts(sizes, low)] + [len(sizes)] * self.size
        return slice(cuts[self.rank], cuts[self.rank + 1])

    def gathered(self, mine: T) -> list[T]:
        """What each process has, by rank; all processes get it."""
        if self.size == 1:
            return [mine]
        everyones: list[Any] = [None] * self.size
        distributed.all_gather_object(everyones, mine)
        return everyones

    def told(self, by_leader: Any) -> Any:
        """What the leading process says, in all processes; what the others say does not matter."""
        said: list[Any] = [by_leader]
        if self.size > 1:
            distributed.broadcast_object_list(said, src=0)
        return said[0]

    def sum_gradients(self, parameters: Iterable[nn.Parameter], numbers: Sequence[float]) -> list[float]:
        """Sum gradients over the processes in place, and further numbers with them, in one exchange."""
        if self.size == 1:
            return list(numbers)
        learned = list(parameters)
        # a parameter that got no gradient anywhere must keep having none: the optimizer treats 0 differently
        has = torch.tensor([float(p.grad is not None) for p in learned], device=learned[0].device)
        flat = [(torch.zeros_like(p) if p.grad is None else p.grad).flatten().float() for p in learned]
        together = torch.cat([*flat, has])
        exact = torch.tensor(numbers, dtype=torch.float64, device=together.device)
        distributed.all_reduce(together)
        distributed.all_reduce(exact)
        *sums, has = torch.split(together, [*(p.numel() for p in learned), len(learned)])
        for parameter, total, any_has in zip(learned, sums, has.tolist(), strict=True):
            parameter.grad = total.view_as(parameter).to(parameter.dtype) if any_has else None
        return [float(value) for value in exact.tolist()]

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            distributed.barrier()


def _cuts(sizes: Sequence[int], most: int) -> list[int]:
    """Where parts end that are each filled as far as `most` allows."""
    ends, filled = [], 0
    for number, size in enumerate(sizes):
        if filled + size > most:
            ends.append(number)
            filled = 0
        filled += size
    return [*ends, len(sizes)]


ALONE = Group()


@contextmanager
def process_group(device: torch.device) -> Iterator[Group]:
    """The group that torchrun has made for this process; alone without it."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield ALONE
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    # the others wait while the leading process scores the test videos, however long that takes
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(days=1))
    try:
        yield Group(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()
