"""How a user says where runs are computed."""

import re

import pytest

from fairpass.runs import Executor, Processes, RayCluster, executor_for


def test_processes() -> None:
    assert type(executor_for()) is type(executor_for(1)) is Executor
    several = executor_for(3, "processes")
    assert isinstance(several, Processes)
    assert several.jobs == 3


@pytest.mark.parametrize(
    ("text", "address"), [("ray", None), ("ray://auto", "auto"), ("ray://head:10001", "ray://head:10001")]
)
def test_ray(text: str, address: str | None) -> None:
    executor = executor_for(2, text)
    assert isinstance(executor, RayCluster)
    assert (executor.address, executor.jobs) == (address, 2)
    assert not executor.is_here(1)


@pytest.mark.parametrize("text", ["", "spark", "Ray", "ray:", "ray://", "ray://head", "ray://head:port", "ray://a/b:1"])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(
        ValueError, match=re.escape(f"'executor' must be processes, ray, ray://HOST:PORT or ray://auto (got {text!r})")
    ):
        executor_for(1, text)


@pytest.mark.parametrize("executor", ["processes", "ray"])
def test_jobs_are_checked(executor: str) -> None:
    with pytest.raises(ValueError, match=r"'jobs' must be at least 1 \(got 0\)"):
        executor_for(0, executor)
