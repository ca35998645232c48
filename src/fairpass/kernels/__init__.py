"""Exact Gaussian kernel sums at linear cost, and the maximum mean discrepancy on top of them."""

from fairpass.kernels.mmd import Discrepancy, Groups, intergroup_similarity, mmd2, witness
from fairpass.kernels.sums import gauss_slope, gauss_sum, laplace_sum

__all__ = [
    "Discrepancy",
    "Groups",
    "gauss_slope",
    "gauss_sum",
    "intergroup_similarity",
    "laplace_sum",
    "mmd2",
    "witness",
]
