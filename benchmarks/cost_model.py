"""What an epoch costs as a sum of terms, fitted to measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls


@dataclass(frozen=True)
class CostModel:
    """Seconds for one unit of each quantity."""

    seconds: Mapping[str, float]

    def __call__(self, quantities: Mapping[str, float]) -> float:
        """Return the seconds of an epoch that has these quantities."""
        return sum(each * quantities.get(name, 0.0) for name, each in self.seconds.items())


def fit_costs(rows: Sequence[Mapping[str, float]], taken: Sequence[float]) -> CostModel:
    """Return the model with the smallest sum of squared relative errors whose coefficients are not negative."""
    names = list(rows[0])
    wanted = np.asarray(taken, float)
    design = np.array([[row[name] for name in names] for row in rows]) / wanted[:, None]
    scale = np.abs(design).max(0)
    scale[scale == 0] = 1.0
    found, _ = nnls(design / scale, np.ones(len(wanted)))
    return CostModel(dict(zip(names, (found / scale).tolist(), strict=True)))
