"""The processes that share one graph: this one alone, or those of a process group of `torch.distributed`.

Code that adds up or compares over all nodes uses the methods of `world()`. A process that is alone has all nodes, and
these methods return their arguments. In a shared world every process has some of the nodes, and all of them make the
same calls in the same order. Results are bitwise the same on every process, so that all make the same decisions.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from fairpass.errors import DataError, FairpassError

T = TypeVar("T")


class World:
    """A process that has all nodes."""

    size, rank, first_node = 1, 0, 0
    is_shared = False

    def total(self, x: Tensor) -> Tensor:
        """Return the sum of a tensor over all processes, for use at their nodes; differentiable."""
        return x

    def joint_loss(self, share: Tensor) -> Tensor:
        """Return the sum of the processes' shares of a loss, which every process then differentiates."""
        return share

    def largest(self, x: Tensor) -> Tensor:
        return x

    def smallest(self, x: Tensor) -> Tensor:
        return x

    def count(self, number: int) -> int:
        """Return the sum of a number over all processes."""
        return number

    def before(self, number: int) -> int:
        """Return the sum of a number over the processes before this one."""
        return 0

    def agree(self, work: Callable[[], T]) -> T:
        """Return the result of `work`; if it fails on any process, the error is raised on all."""
        return work()

    def broadcast(self, content: bytes | None) -> bytes | None:
        """Return what process 0 was given."""
        return content

    def mean(self, x: Tensor, dim: int) -> Tensor:
        """Return the mean over the nodes of all processes, keeping the axis with length 1; differentiable."""
        return x.mean(dim, keepdim=True)

    def bounds(self, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        """Return the smallest and the largest entries over the nodes of all processes, without gradient."""
        # Not `aminmax`, which takes eight times as long.
        return x.amin(dim), x.amax(dim)

    def mean_square(self, x: Tensor) -> Tensor:
        """Return the mean squared distance of the nodes `(..., N, d)` from their mean, as `(...)`, without gradient."""
        return (x - x.mean(-2, keepdim=True)).square().sum(-1).mean(-1)

    def sizes(self, number: int) -> list[int]:
        """Return the numbers that all processes give, in their order."""
        return [number]

    def gather(self, rows: Tensor, sizes: list[int] | None = None) -> Tensor:
        """Return the rows of all processes, one process after the other, without gradient.

        Giving `sizes`, the number of rows of every process, saves a message.
        """
        return rows

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace the gradients of parameters that all processes have by their sum over the processes."""

    def dropout(self, x: Tensor, p: float, training: bool) -> Tensor:
        return nn.functional.dropout(x, p, training)


class SharedWorld(World):
    """A process that has the nodes from `first_node` on; the others of the default process group have the rest."""

    is_shared = True

    def __init__(self, first_node: int = 0) -> None:
        self.size, self.rank, self.first_node = dist.get_world_size(), dist.get_rank(), first_node
        # What this process has sent to others: sums ("reduce"), halos ("exchange"), rows of all ("gather").
        self.messages, self.sent_bytes = Counter[str](), Counter[str]()

    def total(self, x: Tensor) -> Tensor:
        out: Tensor = _Total.apply(x, self)  # type: ignore[no-untyped-call] # torch's own
        return out

    def joint_loss(self, share: Tensor) -> Tensor:
        out: Tensor = _JointLoss.apply(share, self)  # type: ignore[no-untyped-call] # torch's own
        return out

    def largest(self, x: Tensor) -> Tensor:
        return self.reduce(x, dist.ReduceOp.MAX)

    def smallest(self, x: Tensor) -> Tensor:
        return -self.largest(-x)

    def count(self, number: int) -> int:
        return int(self.reduce(torch.tensor(number)))

    def before(self, number: int) -> int:
        return sum(self.sizes(number)[: self.rank])

    def agree(self, work: Callable[[], T]) -> T:
        problem = None
        try:
            done = work()
        except (FairpassError, OSError, ValueError) as error:
            problem = error
        failed = self.gather(torch.tensor([problem is not None]), [1] * self.size).nonzero().flatten().tolist()
        if not failed:
            return done
        said = self.broadcast(str(problem).encode() if problem is not None else b"", failed[0])
        raise problem if problem is not None else DataError((said or b"").decode())

    def mean(self, x: Tensor, dim: int) -> Tensor:
        if self.size == 1:
            return super().mean(x, dim)
        own = x.sum(dim, keepdim=True)
        both = self.total(torch.cat([own.flatten(), own.new_tensor([x.shape[dim]])]))
        return both[:-1].view(own.shape) / both[-1].detach().clamp(min=1)

    def bounds(self, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if x.shape[dim]:
            both = torch.stack([-x.detach().amin(dim), x.detach().amax(dim)])
        else:  # all nodes that take part belong to other processes
            shape = [size for axis, size in enumerate(x.shape) if axis != dim % x.dim()]
            both = x.new_full((2, *shape), -torch.inf)
        low, high = self.largest(both)
        return -low, high

    def mean_square(self, x: Tensor) -> Tensor:
        if self.size == 1:
            return super().mean_square(x)
        # Each process's own number, mean and sum of squares about it: in one message, and without cancellation.
        own, (*batch, count, dimension) = x.detach().double(), x.shape
        mean = own.sum(-2) / max(1, count)
        squares = (own - mean[..., None, :]).square().sum((-2, -1))
        packed = torch.cat([own.new_tensor([count]), mean.flatten(), squares.flatten()])
        found = self.gather(packed[None], [1] * self.size)
        counts, means, squares = torch.split(found, [1, mean.numel(), squares.numel()], 1)
        nodes, means = counts.sum().clamp(min=1), means.view(self.size, *batch, dimension)
        weights = counts.view(-1, *[1] * mean.dim()) / nodes
        between = (weights * (means - (weights * means).sum(0)).square()).sum((0, -1))
        mean_square: Tensor = between + squares.sum(0).view(batch) / nodes
        return mean_square.to(x.dtype)

    def sizes(self, number: int) -> list[int]:
        found = torch.zeros(self.size, dtype=torch.long)
        found[self.rank] = number
        return [int(each) for each in self.reduce(found)]

    def gather(self, rows: Tensor, sizes: list[int] | None = None) -> Tensor:
        if self.size == 1:
            return rows.detach()
        sizes = sizes or self.sizes(len(rows))
        padded = rows.new_zeros((max(sizes), *rows.shape[1:]))
        padded[: len(rows)] = rows.detach()
        # Not every backend can gather truth values.
        sent = padded.to(torch.uint8) if padded.dtype == torch.bool else padded
        found = [torch.empty_like(sent) for _ in range(self.size)]
        self._note("gather", sent, self.size - 1)
        dist.all_gather(found, sent)
        return torch.cat([part[:size] for part, size in zip(found, sizes, strict=True)]).to(rows.dtype)

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        found = [each for each in parameters if each.requires_grad]
        grads = [torch.zeros_like(each) if each.grad is None else each.grad for each in found]
        if not grads:
            return
        joint = self.reduce(torch.cat([grad.flatten() for grad in grads]))
        for each, grad in zip(found, torch.split(joint, [grad.numel() for grad in grads]), strict=True):
            each.grad = grad.view_as(each).clone()

    def dropout(self, x: Tensor, p: float, training: bool) -> Tensor:
        """Drop entries by a hash of the node's number and the column, independent of how the nodes are divided."""
        if not training or not p:
            return x
        key = torch.randint(2**62, ())  # from the generator that all processes have in the same state
        nodes = torch.arange(self.first_node, self.first_node + x.shape[-2], device=x.device)[:, None]
        cells = nodes * x.shape[-1] + torch.arange(x.shape[-1], device=x.device)
        return x * (_uniform(cells, int(key)) >= p) / (1 - p)

    def exchange(self, rows: Tensor, sizes: list[int], expected: list[int]) -> Tensor:
        """Send the first `sizes[0]` rows to process 0, and so on; return what the others sent, in their order."""
        if self.size == 1:
            return rows
        received = rows.new_empty((sum(expected), *rows.shape[1:]))
        self._note("exchange", rows, 1)
        dist.all_to_all_single(received, rows.contiguous(), expected, sizes)
        return received

    def reduce(self, x: Tensor, operation: Any = dist.ReduceOp.SUM) -> Tensor:
        """Return a tensor reduced over all processes, without gradient."""
        out = x.detach().clone()
        if self.size > 1:
            self._note("reduce", out, 2 * (self.size - 1) / self.size)  # a ring: once to add up, once for the result
            dist.all_reduce(out, operation)
        return out

    def broadcast(self, content: bytes | None, source: int = 0) -> bytes | None:
        own = -1 if content is None or self.rank != source else len(content)
        length = int(self.reduce(torch.tensor(own), dist.ReduceOp.MAX))
        if length <= 0:
            return None if length < 0 else b""
        buffer = torch.empty(length, dtype=torch.uint8)
        if self.rank == source and content is not None:
            buffer = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        dist.broadcast(buffer, source)
        return buffer.numpy().tobytes()

    def _note(self, kind: str, x: Tensor, times: float) -> None:
        self.messages[kind] += 1
        self.sent_bytes[kind] += round(times * x.numel() * x.element_size())


_current: ContextVar[World] = ContextVar("world", default=World())  # noqa: B039 # it has no state


def world() -> World:
    return _current.get()


@contextmanager
def inside(shared: World) -> Iterator[None]:
    """Let sums and comparisons in the block be over the nodes of all processes of a world."""
    token = _current.set(shared)
    try:
        yield
    finally:
        _current.reset(token)


class _Total(torch.autograd.Function):
    """The sum over processes. Every process uses it at its nodes, so the gradients of all of them add up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shared: SharedWorld) -> Tensor:
        ctx.shared = shared
        return shared.reduce(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.shared.total(grad), None


class _JointLoss(torch.autograd.Function):
    """The sum over processes of a loss. Its gradient is already the same on every process."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shared: SharedWorld) -> Tensor:
        return shared.reduce(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


def _uniform(cells: Tensor, key: int) -> Tensor:
    """Return a number in [0, 1) for each cell, by the finaliser of SplitMix64 (Steele et al. 2014)."""
    z = cells * -7046029254386353131 + key  # 64 bits, modulo 2^64
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        z = (z ^ ((z >> shift) & ((1 << (64 - shift)) - 1))) * factor
    z = z ^ ((z >> 31) & ((1 << 33) - 1))
    return ((z >> 11) & ((1 << 53) - 1)).double() / (1 << 53)
