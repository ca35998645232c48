"""Utility of a classifier and differences between groups: scores in, one frozen record out."""

from fairpass.metrics.bootstrap import Interval, bootstrap_intervals
from fairpass.metrics.catalog import METRICS, Metric
from fairpass.metrics.evaluation import Evaluation, GroupRates, Pair, evaluate
from fairpass.metrics.functions import (
    accuracy,
    auc,
    balanced_accuracy,
    delta_dp,
    delta_eo,
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    f1,
    rates,
    roc_auc,
)
from fairpass.metrics.group_thresholds import GroupRule, GroupThresholds
from fairpass.metrics.split_metrics import SplitMetrics, selection
from fairpass.metrics.threshold import best_threshold

__all__ = [
    "METRICS",
    "Evaluation",
    "GroupRates",
    "GroupRule",
    "GroupThresholds",
    "Interval",
    "Metric",
    "Pair",
    "SplitMetrics",
    "accuracy",
    "auc",
    "balanced_accuracy",
    "best_threshold",
    "bootstrap_intervals",
    "delta_dp",
    "delta_eo",
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "evaluate",
    "f1",
    "rates",
    "roc_auc",
    "selection",
]
