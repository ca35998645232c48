"""What methods gain in fairness over another, and what they pay for it, in one sentence."""

from fairpass.methods.summary import Row

# What is less than this, in points, is not seen in a number with one decimal.
_VISIBLE = 0.05


def tradeoff(plain: Row, *fair: Row) -> str:
    """Return a sentence on how each of `fair` differs from `plain`, all numbers being means over the runs.

    It says so if there is no gain, and if a gain is smaller than the deviation between runs, so that another
    choice of seeds could turn it around.
    """
    if not plain.mean:
        return f"There is no result of {plain.method} to compare with."
    return f"Against {plain.method}, {'; '.join(_clause(plain, row) for row in fair)}."


def _clause(plain: Row, fair: Row) -> str:
    if not fair.mean:
        return f"{fair.method} has no result"
    gains = {metric: plain.mean[metric] - fair.mean[metric] for metric in ("DP", "EO")}
    subject = fair.method
    if all(gain < _VISIBLE for gain in gains.values()):
        subject += " gains no fairness: it"
    doubt = " (less than the deviation between runs)" if _is_in_doubt(plain, fair, gains) else ""
    loss = plain.mean["ACC"] - fair.mean["ACC"]
    cost = f"at a cost of {loss:.1f} points of accuracy" if loss >= _VISIBLE else "at no cost in accuracy"
    levels = ", ".join(f"{name} {plain.mean[name]:.1f} to {fair.mean[name]:.1f}" for name in ("ACC", "AUC"))
    return f"{subject} {_moves(plain, fair)}{doubt}, {cost} ({levels})"


def _moves(plain: Row, fair: Row) -> str:
    """Return "lowers ΔDP from 9.0 to 3.0 and ΔEO from 8.0 to 2.0", or what else happens to the two."""
    verbs, moves = [], []
    for metric in ("DP", "EO"):
        before, after = plain.mean[metric], fair.mean[metric]
        stays = abs(after - before) < _VISIBLE
        verbs.append("leaves" if stays else "lowers" if after < before else "raises")
        moves.append(f"Δ{metric} at {after:.1f}" if stays else f"Δ{metric} from {before:.1f} to {after:.1f}")
    first, second = verbs
    return f"{first} {moves[0]} " + (f"and {moves[1]}" if first == second else f"but {second} {moves[1]}")


def _is_in_doubt(plain: Row, fair: Row, gains: dict[str, float]) -> bool:
    """Return whether there are gains, but none larger than the deviation of either method's runs."""
    visible = {metric: gain for metric, gain in gains.items() if gain >= _VISIBLE}
    return bool(visible) and all(gain < max(fair.std[metric], plain.std[metric]) for metric, gain in visible.items())
