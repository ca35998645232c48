"""The published split and the stratified one."""

import random
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairpass.datasets.registry import SplitRule
from fairpass.datasets.splits import Split, benchmark_split, label_balanced_ids, stratified_split
from fairpass.errors import DataError

seeds = st.integers(0, 2**32 - 1)

Codes = NDArray[np.int64]


@st.composite
def labels_and_groups(draw: st.DrawFn) -> tuple[Codes, Codes]:
    size = draw(st.integers(1, 80))
    y = draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size))
    sens = draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size))
    return np.array(y), np.array(sens)


def split_by(rule: SplitRule, y: Codes, labels_for_training: int, seed: int = 20) -> Split:
    return benchmark_split(y, np.zeros_like(y), rule, labels_for_training, seed)


def assert_disjoint(split: Split, *, within: NDArray[np.bool_]) -> None:
    times_used = split.train.astype(int) + split.val.astype(int) + split.test.astype(int)
    assert times_used.max() <= 1
    assert not times_used[~within].any()


@given(st.lists(st.integers(-1, 1), min_size=1, max_size=200), st.integers(0, 60), seeds)
def test_label_balanced_split(labels: list[int], labels_for_training: int, seed: int) -> None:
    y = np.array(labels)
    split = split_by("balanced", y, labels_for_training, seed)
    assert_disjoint(split, within=y >= 0)
    for label in (0, 1):
        is_label = y == label
        count = int(is_label.sum())
        half, three_quarters = count // 2, 3 * count // 4
        assert (split.train & is_label).sum() == min(half, labels_for_training // 2)
        assert (split.val & is_label).sum() == three_quarters - half
        assert (split.test & is_label).sum() == count - three_quarters


def test_label_balanced_masks_are_the_ids() -> None:
    y = np.arange(40) % 2
    split = split_by("balanced", y, 10, seed=3)
    for mask, ids in zip((split.train, split.val, split.test), label_balanced_ids(y, 10, seed=3), strict=True):
        assert np.flatnonzero(mask).tolist() == sorted(ids)


def test_more_training_labels_leave_validation_and_test_alone() -> None:
    y = np.arange(200) % 2
    few, many = label_balanced_ids(y, 10), label_balanced_ids(y, 60)
    assert few[1:] == many[1:]
    assert set(few[0]) < set(many[0])


@given(st.lists(st.integers(-1, 2), min_size=1, max_size=200), st.integers(0, 60), seeds)
def test_label_stratified_split(labels: list[int], labels_for_training: int, seed: int) -> None:
    y = np.array(labels)
    split = split_by("stratified", y, labels_for_training, seed)
    assert_disjoint(split, within=y >= 0)
    assert np.array_equal(split.train | split.val | split.test, y >= 0), "whoever is not needed for training is tested"
    halves = np.bincount(y[y >= 0]) // 2
    wanted = min(labels_for_training, int(halves.sum()))
    assert split.train.sum() == wanted
    for label, half in enumerate(halves.tolist()):
        is_label = y == label
        count = int(is_label.sum())
        assert abs(int((split.train & is_label).sum()) - wanted * half / max(int(halves.sum()), 1)) < 1
        assert (split.val & is_label).sum() == 3 * count // 4 - half


def test_label_stratified_split_by_hand() -> None:
    y = np.array([0] * 60 + [1] * 20 + [-1] * 20)
    split = split_by("stratified", y, 20)
    counts = {name: getattr(split, name)[:60].sum().item() for name in ("train", "val", "test")}
    assert counts == {"train": 15, "val": 15, "test": 30}
    assert [int(mask[60:80].sum()) for mask in (split.train, split.val, split.test)] == [5, 5, 10]
    assert split_by("stratified", y, 1_000).train.sum() == 40, "never more than half of each label"
    again, other = split_by("stratified", y, 20), split_by("stratified", y, 20, seed=1)
    assert np.array_equal(split.train, again.train)
    assert not np.array_equal(split.train, other.train)
    more = split_by("stratified", y, 40)
    assert np.array_equal(more.val, split.val)
    assert (more.train | ~split.train).all(), "more training labels are added to the same ones"


@pytest.mark.parametrize("rule", ["balanced", "stratified"])
def test_a_benchmark_node_without_label_or_group_is_in_no_part(rule: SplitRule) -> None:
    y, sens = np.arange(300) % 3 - 1, np.arange(300) // 3 % 3 - 1
    split = benchmark_split(y, sens, rule, 30, seed=4)
    assert_disjoint(split, within=(y >= 0) & (sens >= 0))
    known = np.where(sens >= 0, y, -1)
    expected = split_by(rule, known, 30, 4)
    assert np.array_equal(split.test, expected.test)
    assert split.train.sum() == 30


@given(labels_and_groups(), seeds)
def test_stratified_split_uses_every_labelled_node_once(graph: tuple[Codes, Codes], seed: int) -> None:
    y, sens = graph
    split = stratified_split(y, sens, seed=seed)
    assert_disjoint(split, within=y >= 0)
    assert np.array_equal(split.train | split.val | split.test, y >= 0)


@given(labels_and_groups(), seeds)
def test_stratified_split_gives_every_label_and_group_its_share(graph: tuple[Codes, Codes], seed: int) -> None:
    y, sens = graph
    split = stratified_split(y, sens, seed=seed)
    for label, group in set(zip(y[y >= 0].tolist(), sens[y >= 0].tolist(), strict=True)):
        stratum = (y == label) & (sens == group)
        count = int(stratum.sum())
        train, val, test = (int((mask & stratum).sum()) for mask in (split.train, split.val, split.test))
        assert train >= 1
        assert test >= (count >= 2)
        assert val >= (count >= 3)
        assert abs(train - count / 2) <= 1
        assert abs(val - count / 4) <= 0.75
        assert abs(test - count / 4) <= 0.75


def test_stratified_fractions() -> None:
    y, sens = np.arange(1000) % 2, np.arange(1000) // 2 % 2
    split = stratified_split(y, sens, fractions=(0.6, 0.1, 0.3))
    assert [int(mask.sum()) for mask in (split.train, split.val, split.test)] == [600, 100, 300]


def test_the_same_seed_gives_the_same_split_and_another_another() -> None:
    y, sens = np.arange(100) % 2, np.arange(100) // 2 % 2
    first, again, other = (stratified_split(y, sens, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.train, again.train)
    assert not np.array_equal(first.train, other.train)
    assert label_balanced_ids(y, 20, seed=1) == label_balanced_ids(y, 20, seed=1)
    assert label_balanced_ids(y, 20, seed=1) != label_balanced_ids(y, 20, seed=2)


def test_splitting_leaves_labels_groups_and_the_global_generator_alone() -> None:
    y, sens = np.arange(12) % 3 - 1, np.arange(12) % 2
    before = y.copy(), sens.copy()
    state = random.getstate()
    stratified_split(y, sens)
    split_by("balanced", y, 4)
    assert np.array_equal(y, before[0])
    assert np.array_equal(sens, before[1])
    assert random.getstate() == state


@pytest.mark.parametrize("fractions", [(0.5, 0.5, 0.0), (0.5, 0.5, 0.5), (1.2, -0.1, -0.1), (0.5, 0.5), (nan, 1, 1)])
def test_wrong_fractions(fractions: tuple[float, float, float]) -> None:
    y = np.array([0, 1])
    with pytest.raises(DataError, match="'fractions' must be three or four positive numbers that sum to 1"):
        stratified_split(y, y, fractions=fractions)
