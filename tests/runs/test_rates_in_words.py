"""The sentence tells each group's rates as they are, and does not claim a gain where there is none."""

import numpy as np
import pytest

from fairpass.metrics import evaluate
from fairpass.runs import Rate, RunRecord, rates_in_words

LABEL, NAMES = "a loan", {"m": "men", "f": "women", "gcn": "The network"}
# Ten women, ten men; half of each have the label. All of them many times, so that differences can be shown.
SENS = np.repeat([0, 1], 10)
LABELS = np.tile(np.repeat([0, 1], 5), 2)
TIMES = 200


def run(method: str, *found: tuple[int, int], seed: int = 0, times: int = TIMES) -> RunRecord:
    """A run that gives the label to so many with and without it, among the women and then among the men."""
    decisions = np.concatenate([np.r_[np.arange(5) < wrong, np.arange(5) < right] for right, wrong in found])
    y, scores, sens = (np.tile(each, times) for each in (LABELS, decisions.astype(float), SENS))
    evaluation = evaluate(y, scores, sens=sens, group_names=("f", "m"), label_names=("no", "loan"))
    return RunRecord(method, seed, 1.0, evaluation)


PLAIN = run("gcn", (2, 0), (5, 1))


@pytest.mark.parametrize(
    ("rate", "sentence"),
    [
        (
            "selection_rate",
            "The network predicts a loan for 60 % of men and 20 % of women (ΔDP 40.0); gmmd for 50 % and 40 % "
            "(ΔDP 10.0), at a cost of 15.0 points of accuracy (95 % interval of the loss 13.1 to 16.9).",
        ),
        (
            "true_positive_rate",
            "The network finds 100 % of men and 40 % of women with a loan (ΔEO 60.0); gmmd 60 % and 60 % (ΔEO 0.0), "
            "at a cost of 15.0 points of accuracy (95 % interval of the loss 13.1 to 16.9).",
        ),
    ],
)
def test_sentence(rate: Rate, sentence: str) -> None:
    assert rates_in_words([PLAIN], [run("gmmd", (3, 1), (3, 2))], rate, label=LABEL, names=NAMES) == sentence


def test_numbers_are_means_over_runs_without_error() -> None:
    runs = [
        run("gmmd", (2, 0), (4, 0)),
        run("gmmd", (4, 0), (5, 1), seed=1),
        RunRecord("gmmd", 2, 1.0, None, "it failed"),
    ]
    sentence = rates_in_words([PLAIN], runs, "selection_rate", label=LABEL, names=NAMES)
    assert "gmmd for 50 % and 30 % (ΔDP 20.0), at no cost in accuracy (95 % interval" in sentence


def test_differences_of_opposite_sign_do_not_cancel() -> None:
    runs = [run("gmmd", (2, 0), (5, 0)), run("gmmd", (5, 0), (2, 0), seed=1)]
    sentence = rates_in_words([PLAIN], runs, "selection_rate", label=LABEL, names=NAMES)
    assert "gmmd for 35 % and 35 % (ΔDP 30.0)" in sentence


def test_no_gain_is_said() -> None:
    sentence = rates_in_words([PLAIN], [run("gmmd", (1, 0), (5, 1))], "selection_rate", label=LABEL, names=NAMES)
    cost = "at a cost of 5.0 points of accuracy (95 % interval of the loss 3.2 to 6.8)"
    assert sentence.endswith(f"(ΔDP 50.0), {cost}. The groups come no closer.")


def test_gain_within_the_deviation_is_said() -> None:
    runs = [run("gmmd", (2, 0), (5, 1)), run("gmmd", (4, 0), (5, 1), seed=1)]
    sentence = rates_in_words([PLAIN], runs, "selection_rate", label=LABEL, names=NAMES)
    assert "(ΔDP 30.0), at no cost in accuracy" in sentence
    assert sentence.endswith(". The gain in fairness is less than the deviation between runs.")


def test_what_few_nodes_cannot_show_is_said() -> None:
    few = [run("gcn", (2, 0), (5, 1), times=1)], [run("gmmd", (3, 1), (3, 2), times=1)]
    sentence = rates_in_words(*few, "selection_rate", label=LABEL, names=NAMES)
    assert "with 15.0 points less accuracy, which these test nodes cannot tell from none" in sentence
    assert sentence.endswith(". The gain in fairness is less than 20 test nodes can show.")


def test_what_has_no_wording_goes_by_its_name() -> None:
    sentence = rates_in_words([PLAIN], [PLAIN], "selection_rate", label="a loan", names={"m": "men"})
    assert sentence.startswith("gcn predicts a loan for 60 % of men and 20 % of f (ΔDP 40.0)")


def test_three_groups() -> None:
    sens, labels = np.repeat([0, 1, 2], 4), np.tile([0, 1], 6)
    made = evaluate(labels, (np.arange(12) % 4 < sens + 1).astype(float), sens=sens, group_names=("a", "b", "c"))
    sentence = rates_in_words(
        [RunRecord("x", 0, 1.0, made)], [RunRecord("y", 0, 1.0, made)], "selection_rate", label="it", names={}
    )
    assert sentence.startswith("x predicts it for 25 % of a, 50 % of b and 75 % of c (ΔDP 50.0); y for 25 %, 50 % and")


@pytest.mark.parametrize("runs", [[], [RunRecord("gmmd", 0, 1.0, None, "it failed")]])
def test_nothing_to_compare(runs: list[RunRecord]) -> None:
    name = "gmmd" if runs else "a method"
    for pair in ((runs, [PLAIN]), ([PLAIN], runs)):
        assert (
            rates_in_words(*pair, "selection_rate", label=LABEL, names=NAMES)
            == f"There is no result of {name} to compare."
        )


def test_more_than_two_labels_are_refused() -> None:
    labels, sens = np.tile([0, 1, 2], 4), np.repeat([0, 1], 6)
    many = RunRecord("gcn", 0, 1.0, evaluate(labels, np.eye(3)[labels], sens=sens))
    with pytest.raises(ValueError, match=r"^'runs' must be of a graph with two labels \(got 3\)$"):
        rates_in_words([many], [many], "selection_rate", label=LABEL, names=NAMES)
