"""What one method gains in fairness over another, and what it pays for it, in one sentence."""

from fairpass.methods.summary import Row

# What is less than this, in points, is not seen in a number with one decimal.
_VISIBLE = 0.05


def tradeoff(fair: Row, plain: Row) -> str:
    """Return a sentence on how `fair` differs from `plain`, all numbers the means over the runs.

    It says so if there is no gain, and if a gain is smaller than the deviation between runs, so that another
    choice of seeds could turn it around.
    """
    for row in (fair, plain):
        if not row.mean:
            return f"Nothing can be said of {fair.method} and {plain.method}: {row.method} has no result."
    gains = {metric: plain.mean[metric] - fair.mean[metric] for metric in ("DP", "EO")}
    moves = [_move(metric, plain, fair) for metric in gains]
    fairer = [gain >= _VISIBLE for gain in gains.values()]
    subject = f"Against {plain.method}, {fair.method}"
    opening = subject if any(fairer) else f"{subject} gains no fairness: it"
    moved = f" {'but' if fairer[0] != fairer[1] else 'and'} ".join(moves)
    doubt = ", less than the deviation between runs," if any(fairer) and _is_in_doubt(fair, plain, gains) else ""
    change = fair.mean["ACC"] - plain.mean["ACC"]
    cost = f"at a cost of {-change:.1f} points of accuracy" if change <= -_VISIBLE else "at no cost in accuracy"
    levels = ", ".join(f"{name} {plain.mean[name]:.1f} to {fair.mean[name]:.1f}" for name in ("ACC", "AUC"))
    return f"{opening} {moved}{doubt} {cost} ({levels})."


def _move(metric: str, plain: Row, fair: Row) -> str:
    before, after = plain.mean[metric], fair.mean[metric]
    if abs(after - before) < _VISIBLE:
        return f"leaves Δ{metric} at {after:.1f}"
    return f"{'lowers' if after < before else 'raises'} Δ{metric} from {before:.1f} to {after:.1f}"


def _is_in_doubt(fair: Row, plain: Row, gains: dict[str, float]) -> bool:
    """Return whether every gain is smaller than the larger deviation of the two methods."""
    return all(gain < max(fair.std[metric], plain.std[metric]) for metric, gain in gains.items())
