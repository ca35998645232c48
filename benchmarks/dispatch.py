"""The cost model that chooses a backend: its constants as measured here, and what its choices cost."""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from benchmarks.kernels import cloud, signed_strengths
from benchmarks.result import Cell, Result, Table
from benchmarks.timing import side_by_side
from fairpass.kernels import cost, gauss_sum
from fairpass.kernels.backend import Problem
from fairpass.kernels.box import fit_box, reach
from fairpass.kernels.directions import default_directions, draw
from fairpass.kernels.dispatch import Backend, choose
from fairpass.kernels.pairwise import Tiled
from fairpass.kernels.split import FEW_PAIRS, Cut, Split, cut

EPS = 1e-7
REACH = float(reach(np.ones(1), EPS, 2)[0])


def run(quick: bool) -> Result:
    return Result("dispatch", [_constants(quick), _choices(quick)])


def _least(call: Callable[[], object], quick: bool) -> float:
    """Return the nanoseconds of the fastest of several calls."""
    return 1e9 * side_by_side({"it": call}, rounds=5 if quick else 15)["it"].least


def _constants(quick: bool) -> Table:
    measured = {**_pairs(quick), **_modes(quick), **_slices(quick), **_pieces(quick)}
    rows: list[dict[str, Cell]] = [
        {
            "constant": name,
            "measured ns": value,
            "assumed ns": getattr(cost, name),
            "measured / assumed": value / getattr(cost, name),
        }
        for name, value in measured.items()
    ]
    return Table("Constants of the cost model", rows)


def _pairs(quick: bool) -> dict[str, float]:
    n = 2000
    x = cloud(n, 8.0)[None]
    tiled = Tiled(Problem(x, x, torch.ones(1)))

    def by_pairs(q: int) -> float:
        w = signed_strengths(n, q)[None]
        return _least(lambda: tiled.sum(w), quick)

    columns = (1, 4, 16)
    return _fit(("PAIR", "PAIR_COLUMN"), [(n**2, n**2 * q) for q in columns], [by_pairs(q) for q in columns])


def _modes(quick: bool) -> dict[str, float]:
    terms, times = [], []
    for n, span, q in itertools.product((300, 3000, 10_000), (1.0, 8.0, 25.0), (1, 4)):
        x, w = cloud(n, span), signed_strengths(n, q)
        sizes = fit_box((x.mT[None].double(),), torch.ones(1), EPS).sizes
        terms.append((2 * n * q * math.prod(sizes), 2 * n * sum(sizes), 1))
        times.append(_least(partial(gauss_sum, x, x.clone(), w, 1.0, backend="spectral"), quick))
    return _fit(("MODE_COLUMN", "FEATURE", "SPECTRAL_CALL"), terms, times)


def _slices(quick: bool) -> dict[str, float]:
    terms, times = [], []
    for n, d in itertools.product((3000, 10_000), (4, 9)):
        x, w = cloud(n, 1.0, d), signed_strengths(n, 1)
        terms.append((2 * n * len(draw(d, default_directions(d)).weights),))
        times.append(_least(partial(gauss_sum, x, x, w, 0.3, backend="sliced"), quick) - cost.SPECTRAL_CALL)
    return _fit(("SLICE",), terms, times)


def _fit(names: Sequence[str], terms: Sequence[Sequence[int]], times: list[float]) -> dict[str, float]:
    """Return what each term costs, given sums of them; relative errors count, so that small sums do, too."""
    fitted, _ = nnls(np.asarray(terms) / np.asarray(times)[:, None], np.ones(len(times)))
    return dict(zip(names, map(float, fitted), strict=True))


def _pieces(quick: bool) -> dict[str, float]:
    """Take pieces just too large to be taken by pairs without a look at their extent."""
    n, count = math.isqrt(FEW_PAIRS) + 1, 20
    few, many = cloud(n, 8.0)[None], cloud(100_000, 8.0)[None]
    index, w = torch.arange(n), signed_strengths(n)[None]
    problem = Problem(few, few, torch.ones(1), w.shape[-1], EPS)
    split = Split(problem)
    split.cuts = [Cut([(index, index)] * count, 0.0)]

    def by_pieces() -> None:
        for *_, piece in split.pieces():
            Tiled(piece.problem).sum(w)

    def look(points: Tensor) -> float:
        local = points[0].mT.double()
        return _least(lambda: cut(local, local, 3, REACH, EPS), quick)

    by_piece = _least(by_pieces, quick) / count
    by_pairs = _least(lambda: Tiled(problem).sum(w), quick)
    # Two pieces are three looks at the points: at the whole and at each of them.
    return {"PIECE": by_piece - by_pairs + 1.5 * look(few), "CUT": (look(many) - look(few)) / len(many[0])}


def _choices(quick: bool) -> Table:
    sizes = (1000, 5000) if quick else (1000, 5000, 20_000)
    widths = (0.5, 8.0, 200.0) if quick else (0.5, 4.0, 12.0, 40.0, 200.0, 2000.0)
    columns = (1,) if quick else (1, 6)
    rows = [_choice(n, d, width, q) for n, d, width, q in itertools.product(sizes, (1, 2, 3), widths, columns)]
    rows.sort(key=lambda row: -float(row["auto / best"] or 0))
    return Table("What 'auto' takes against the best backend, worst first (alpha 1, forward)", rows[:20])


def _choice(n: int, d: int, width: float, q: int) -> dict[str, Cell]:
    x, w = cloud(n, width * REACH, d), signed_strengths(n, q)
    sizes = fit_box((x.mT[None].double(),), torch.ones(1), EPS).sizes

    def competitor(backend: Backend) -> Callable[[], object]:
        return lambda: gauss_sum(x, x, w, 1.0, backend=backend)

    names: list[Backend] = ["auto", "split", "tiled"]
    if cost.spectral_cost(n, n, q, sizes, same=True) < 10 * cost.pairwise_cost(n**2, q):
        names.append("spectral")
    taken = side_by_side({name: competitor(name) for name in names}, rounds=3, budget=0.5)
    milliseconds = {name: 1e3 * taken[name].least if name in taken else None for name in ("tiled", "spectral", "split")}
    best = min(value for value in milliseconds.values() if value is not None)
    return {
        "nodes": n,
        "d": d,
        "reaches": width,
        "columns": q,
        "chosen": choose(Problem(x[None], x[None], torch.ones(1), q, EPS), "auto").name,
        "auto ms": 1e3 * taken["auto"].least,
        **{f"{name} ms": value for name, value in milliseconds.items()},
        "auto / best": 1e3 * taken["auto"].least / best,
    }
