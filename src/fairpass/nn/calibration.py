r"""Calibrated probabilities of the labels, for each group by itself.

.. math:: q_i = \mathrm{softmax}(s_a z_i + b_a), \qquad a = \text{the group of node } i,

with a scale `s_a` and a bias `b_a` of the logits `z` that are fitted by maximum likelihood on labelled nodes (Platt
scaling; temperature scaling with a bias). A network's own probabilities carry the bias that they are to measure: it may
be as sure of one group's positives as of another group's, and wrong about one of them.
"""

import torch
from torch import Tensor

# Newton's method on a concave likelihood of a few parameters; with the step limited it has converged long before.
_ITERATIONS = 12
_LONGEST_STEP = 2.0
# The prior, in observations, that the network's own probabilities are right; it keeps separable labels finite.
_PRIOR = 1.0


@torch.no_grad()
def calibrate(logits: Tensor, y: Tensor, sens: Tensor, num_groups: int) -> Tensor:
    """Return the scale and the biases of each group, `(..., G, 1 + c)`.

    Args:
        logits: of labelled nodes, `(..., n, c)`.
        y: their labels, `(n,)`.
        sens: their groups, `(n,)`; negative ones are left out.
        num_groups: `G`; a group without labelled nodes keeps the network's own probabilities.
    """
    logits = logits.double()
    members = [torch.nonzero(sens == a)[:, 0] for a in range(num_groups)]
    return torch.stack([_fit(logits[..., nodes, :], y[nodes]) for nodes in members], -2)


def calibrated(logits: Tensor, sens: Tensor, calibration: Tensor) -> Tensor:
    """Return the calibrated probabilities of each label, `(..., N, c)`; unknown groups get the mean over the groups.

    Args:
        logits: `(..., N, c)`.
        sens: group of each node, `(N,)`.
        calibration: what `calibrate` returned.
    """
    calibration = calibration.to(logits)
    by_group = (calibration[..., :, None, :1] * logits[..., None, :, :] + calibration[..., :, None, 1:]).softmax(-1)
    num_groups = calibration.shape[-2]
    share = torch.nn.functional.one_hot(sens.clamp(min=0), num_groups).to(logits)
    share = torch.where((sens >= 0)[:, None], share, 1 / num_groups)
    return (share.mT[..., None] * by_group).sum(-3)


def _fit(z: Tensor, y: Tensor) -> Tensor:
    """Return scale and biases, `(..., 1 + c)`, of one group's logits `(..., n, c)`, by Newton's method."""
    classes = z.shape[-1]
    # In units of their spread one step limit serves all logits.
    unit = (z - z.mean(-1, keepdim=True)).square().mean((-2, -1)).sqrt().clamp(min=1e-6)[..., None, None]
    z = z / unit if z.shape[-2] else z
    start = torch.cat([unit[..., 0], unit.new_zeros((*unit.shape[:-2], classes))], -1)
    target = torch.nn.functional.one_hot(y, classes).to(z)
    theta = start
    for _ in range(_ITERATIONS):
        p = (theta[..., None, :1] * z + theta[..., None, 1:]).softmax(-1)
        residual = p - target
        # Along the scale the logits change by z, along a bias by 1.
        slope = torch.cat([(residual * z).sum((-2, -1))[..., None], residual.sum(-2)], -1) + _PRIOR * (theta - start)
        mean = (p * z).sum(-1, keepdim=True)
        across = (p * (z - mean)).sum(-2)
        curvature = z.new_zeros((*theta.shape, classes + 1))
        curvature[..., 0, 0] = (p * (z - mean).square()).sum((-2, -1))
        curvature[..., 0, 1:] = curvature[..., 1:, 0] = across
        curvature[..., 1:, 1:] = torch.diag_embed(p.sum(-2)) - p.mT @ p
        curvature = curvature + _PRIOR * torch.eye(classes + 1, dtype=z.dtype, device=z.device)
        step = torch.linalg.solve(curvature, slope)
        longest = step.norm(dim=-1, keepdim=True).clamp(min=_LONGEST_STEP)
        theta = theta - step * (_LONGEST_STEP / longest)
    return torch.cat([theta[..., :1] / unit[..., 0], theta[..., 1:]], -1)
