"""Several training processes as one: each takes its share of a step's videos, and gradients are summed.

Start them with `torchrun --nproc-per-node N --no-python -- wtal train …`. Losses are sums over videos and dropout
follows the video, so the result is that of one process with the same step, but for the rounding of sums.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import distributed, nn

from wtal.formats.targets import from_parts, to_parts


@dataclass(frozen=True)
class Share:
    """A process's part of a step's videos.

    With more processes than videos some process has none. It goes through the first one all the same, with losses that
    count 0, because it must be there when processes exchange what they have.
    """

    videos: list[int]
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

    def share(self, numbers: Sequence[int]) -> "Share":
        """This process's part of a step's videos: consecutive ones, so that by rank they are in the step's order.

        >>> [Group(rank, 2).share([5, 6, 7]).videos for rank in range(2)]
        [[5, 6], [7]]
        >>> Group(1, 2).share([5])
        Share(videos=[5], counts=0.0)
        """
        quotient, rest = divmod(len(numbers), self.size)
        start = self.rank * quotient + min(self.rank, rest)
        mine = list(numbers[start : start + quotient + (self.rank < rest)])
        return Share(mine, 1.0) if mine else Share(list(numbers[:1]), 0.0)

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

    def from_leader(self, targets: csr_array | None, n_columns: int, device: torch.device) -> csr_array:
        """The leading process's sparse matrix in all processes; the others give None."""
        if self.size == 1:
            assert targets is not None
            return targets
        arrays = None if targets is None else to_parts(targets)
        told: list[Any] = [arrays and {name: (array.shape, array.dtype) for name, array in arrays.items()}]
        distributed.broadcast_object_list(told, src=0, device=device)
        parts = {}
        for name, (shape, dtype) in told[0].items():
            array = np.empty(shape, dtype) if arrays is None else arrays[name]
            tensor = torch.from_numpy(array).to(device)
            distributed.broadcast(tensor, src=0)
            parts[name] = tensor.cpu().numpy()
        return from_parts(parts, n_columns)

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            distributed.barrier()


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
    # the others wait while the leading process makes targets or scores the test videos, however long that takes
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(days=1))
    try:
        yield Group(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()
