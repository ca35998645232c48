"""Random arguments of `synthetic` that it accepts."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

_SMALLEST_CELL = 3  # nodes of each label in each group


@st.composite
def accepted_dials(draw: st.DrawFn, num_nodes: int) -> dict[str, Any]:
    """Draw `num_groups`, `group_fraction`, `base_rate` and a `label_bias` that leaves both labels in every group."""
    num_groups = draw(st.integers(2, 4))
    group_fraction = draw(st.floats(0.1, 0.9))
    base_rate = draw(st.floats(0.45, 0.55))
    shares = np.array([1 - group_fraction, *[group_fraction / (num_groups - 1)] * (num_groups - 1)])
    # Group g has the rate base_rate + label_bias (mean - g / (num_groups - 1)); the first and the last are extreme.
    mean = float(shares @ np.linspace(0, 1, num_groups))
    margin = _SMALLEST_CELL / int(num_nodes * shares.min())
    above, below = 1 - margin - base_rate, base_rate - margin
    largest = min(above / mean, below / (1 - mean), 1.0)
    smallest = -min(below / mean, above / (1 - mean), 1.0)
    return {
        "num_nodes": num_nodes,
        "num_groups": num_groups,
        "group_fraction": group_fraction,
        "base_rate": base_rate,
        "label_bias": draw(st.floats(smallest, largest)),
    }
