"""How well a classifier does, and how differently it treats groups. Scores in, one frozen record out."""

from fairpass.metrics.bootstrap import Interval, bootstrap_intervals
from fairpass.metrics.evaluation import Evaluation, evaluate
from fairpass.metrics.group import (
    Gap,
    GroupRates,
    Pair,
    delta_dp,
    delta_eo,
    equalized_odds_difference,
    rates,
)
from fairpass.metrics.group_thresholds import GroupRule, GroupThresholds
from fairpass.metrics.quick import Quick, five, selection
from fairpass.metrics.threshold import best_threshold
from fairpass.metrics.utility import accuracy, auc, balanced_accuracy, f1

__all__ = [
    "Evaluation",
    "Gap",
    "GroupRates",
    "GroupRule",
    "GroupThresholds",
    "Interval",
    "Pair",
    "Quick",
    "accuracy",
    "auc",
    "balanced_accuracy",
    "best_threshold",
    "bootstrap_intervals",
    "delta_dp",
    "delta_eo",
    "equalized_odds_difference",
    "evaluate",
    "f1",
    "five",
    "rates",
    "selection",
]
