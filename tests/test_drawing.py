"""Examples are the same in every run unless random ones are asked for."""

from collections.abc import Iterator

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from tests.drawing import VARIABLE, examples, load_profile


@pytest.fixture(autouse=True)
def _profile_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = settings.get_current_profile_name()
    monkeypatch.delenv(VARIABLE, raising=False)
    yield
    settings.load_profile(before)


def drawn(count: int, number: int | None = None) -> list[float]:
    found: list[float] = []

    @examples(count)
    @given(st.floats(0, 1))
    def collect(value: float) -> None:
        found.append(value)

    (collect if number is None else seed(number)(collect))()
    return found


def test_the_same_examples_every_time() -> None:
    load_profile()
    first = drawn(40)
    assert len(first) == 40
    assert drawn(40) == first
    assert settings().database is None


def test_random_examples_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "explore")
    load_profile()
    first = drawn(40, number=1)
    assert len(first) == 200
    assert drawn(40, number=1) == first
    assert drawn(40, number=2) != first


def test_no_such_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "wild")
    with pytest.raises(pytest.UsageError, match=r"'FAIRPASS_HYPOTHESIS' must be 'fixed' or 'explore' \(got 'wild'\)"):
        load_profile()
