"""Fields of fixed sources: what was kept gives the slopes of the sum over all of them, anywhere."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from fairpass.kernels import Discrepancy, Groups, field, gauss_slope
from fairpass.kernels.field import Field, Series, Slices, Sources, field_of

Cloud = Callable[..., Tensor]


def kept_field(points: Tensor, strengths: Tensor, alpha: Tensor) -> Field:
    return field.kept_field(points, strengths, alpha, "auto", None, laplace=False)


def slopes_by_pairs(at: Tensor, sources: Tensor, strengths: Tensor, alpha: float) -> Tensor:
    difference = sources - at[:, None]
    kernel = torch.exp(-alpha * difference.square().sum(-1))
    return 2 * alpha * torch.einsum("ij,ijd,jq->iqd", kernel, difference, strengths)


@pytest.mark.parametrize("shape", range(8))
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_slopes_are_those_of_the_sum_over_all_sources(cloud: Cloud, shape: int, d: int) -> None:
    points = cloud(shape, 0, 400, d)
    strengths = torch.randn(400, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 400
    at = torch.cat([points[:50], points[:50] + 0.3])
    for alpha in (0.3, 4.0):
        kept = kept_field(points, strengths, torch.tensor(alpha, dtype=torch.float64))
        expected = slopes_by_pairs(at, points, strengths, alpha)
        torch.testing.assert_close(kept.slopes(at), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_point_far_away_feels_nothing_and_the_series_does_not_repeat_itself(d: int) -> None:
    points = torch.randn(9000, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 8
    strengths = torch.ones(9000, 1, dtype=torch.float64) / 9000
    kept = kept_field(points, strengths, torch.tensor(1.0, dtype=torch.float64))
    assert isinstance(kept, Series)
    # Along a line that leaves the box: at multiples of its side the bare series would be what it is at its centre.
    steps = torch.linspace(-40, 40, 801, dtype=torch.float64)[:, None].expand(-1, d)
    at = torch.cat([steps, kept.center + kept.side * torch.arange(-3, 4, dtype=torch.float64)[:, None]])
    torch.testing.assert_close(kept.slopes(at), slopes_by_pairs(at, points, strengths, 1.0), rtol=0, atol=1e-7)
    assert bool((kept.slopes(torch.full((1, d), 1e9, dtype=torch.float64)) == 0).all())


@pytest.mark.parametrize("d", [4, 9])
def test_slices_are_kept_as_slices_and_end_at_the_box(d: int) -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(6000, d, generator=generator)
    sens = torch.randint(2, (6000,), generator=generator)
    discrepancy = Discrepancy(Groups.of(sens))
    alpha = torch.tensor(0.3 / (2 * d))
    kept = discrepancy.field(points, alpha)
    assert isinstance(kept, Slices)
    expected, _ = discrepancy.gradient(points, float(alpha))
    scale = float(expected.abs().max())
    torch.testing.assert_close(discrepancy.gradient_in(kept, points) / scale, expected / scale, rtol=0, atol=1e-4)
    assert sum(value.numel() for value in vars(kept).values()) < 6000
    far = torch.zeros(3, d)
    far[:, 0] = torch.tensor([1e3, -1e5, 1e9])
    assert bool((kept.slopes(far) == 0).all())
    again = field_of(vars(kept))
    assert torch.equal(again.slopes(points[:5]), kept.slopes(points[:5]))


def test_the_size_of_a_series_does_not_depend_on_the_number_of_sources() -> None:
    sizes = []
    for count in (1_000, 50_000):
        points = torch.linspace(-2, 2, count)[:, None]
        kept = kept_field(points, torch.ones(count, 1) / count, torch.tensor(0.5))
        assert isinstance(kept, Series)
        sizes.append(sum(value.numel() for value in vars(kept).values()))
    assert sizes[0] == sizes[1] < 200


def test_sources_are_kept_where_a_series_would_be_larger() -> None:
    points = torch.linspace(-1e5, 1e5, 300)[:, None]
    strengths = torch.ones(300, 1)
    kept = kept_field(points, strengths, torch.tensor(1.0))
    assert isinstance(kept, Sources)
    points[0] = 7.0  # what was kept is a copy
    assert float(kept.points[0]) == -1e5


def test_is_what_the_layers_themselves_compute() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(2000, 2, generator=generator)
    sens = torch.randint(3, (2000,), generator=generator)
    for simplified in (False, True):
        discrepancy = Discrepancy(Groups.of(sens), simplified=simplified)
        kept = discrepancy.field(points, torch.tensor(0.7))
        expected, _ = discrepancy.gradient(points, 0.7)
        torch.testing.assert_close(discrepancy.gradient_in(kept, points), expected, rtol=0, atol=1e-9)


def test_laplace() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(60, 2, generator=generator, dtype=torch.float64)
    discrepancy = Discrepancy(Groups.of(torch.arange(60) % 2, torch.float64), kernel="laplace")
    kept = discrepancy.field(points, torch.tensor(0.7, dtype=torch.float64))
    torch.testing.assert_close(discrepancy.gradient_in(kept, points), discrepancy.gradient(points, 0.7)[0])


def test_nothing_to_evaluate_and_nothing_kept() -> None:
    kept = kept_field(torch.zeros(5, 2), torch.ones(5, 1), torch.tensor(1.0))
    assert kept.slopes(torch.zeros(0, 2)).shape == (0, 1, 2)
    nobody = kept_field(torch.zeros(0, 2), torch.zeros(0, 1), torch.tensor(1.0))
    assert torch.equal(nobody.slopes(torch.ones(3, 2)), torch.zeros(3, 1, 2))


@pytest.mark.parametrize("count", [20, 3000])
def test_tensors_make_the_same_field_again(count: int) -> None:
    generator = torch.Generator().manual_seed(0)
    points, strengths = torch.randn(count, 3, generator=generator), torch.randn(count, 2, generator=generator)
    kept = kept_field(points, strengths, torch.tensor(0.4))
    again = field_of(vars(kept))
    assert type(again) is type(kept)
    assert torch.equal(again.slopes(points), kept.slopes(points))


def test_in_single_precision_as_good_as_the_layers() -> None:
    points = torch.randn(5000, 1, generator=torch.Generator().manual_seed(0))
    strengths = torch.ones(5000, 1) / 5000
    kept = kept_field(points, strengths, torch.tensor(0.3))
    expected = gauss_slope(points.double(), strengths.double(), 0.3, backend="dense")[0]
    assert float((kept.slopes(points) - expected).abs().max()) < 1e-6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": torch.tensor(-1.0)}, "a positive alpha and side"),
        ({"alpha": torch.tensor(float("nan"))}, "finite numbers in 'alpha'"),
        ({"side": torch.ones(2)}, "one alpha and box"),
        ({"side": -torch.ones(1)}, "a positive alpha and side"),
        ({"moments": torch.ones(1, 4)}, "a constant, cosines and sines"),
        ({"moments": torch.ones(1, 3, 3)}, "moments for each dimension"),
        ({"moments": torch.full((1, 3), float("inf"))}, "finite numbers in 'moments'"),
        ({"moments": None}, "the tensors of a series, slices or sources"),
    ],
)
def test_tensors_that_are_no_field_are_refused(change: dict[str, Tensor | None], message: str) -> None:
    good = {"alpha": torch.tensor(1.0), "center": torch.zeros(1), "side": torch.ones(1), "moments": torch.ones(1, 3)}
    field_of(good)
    with pytest.raises(ValueError, match=message):
        field_of({name: value for name, value in {**good, **change}.items() if value is not None})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("frequencies", torch.ones(3), "a box and frequencies"),
        ("center", torch.zeros(2), "a box and frequencies"),
        ("sines", torch.ones(1, 2), "cosines and sines"),
        ("frequencies", torch.ones(4, 5), "of each frequency"),
    ],
)
def test_slices_that_do_not_fit_are_refused(name: str, value: Tensor, message: str) -> None:
    good = {
        "center": torch.zeros(5),
        "side": torch.ones(5),
        "frequencies": torch.ones(3, 5),
        "cosines": torch.ones(1, 3),
        "sines": torch.ones(1, 3),
    }
    field_of(good)
    with pytest.raises(ValueError, match=message):
        field_of({**good, name: value})


@pytest.mark.parametrize(
    ("points", "strengths"), [(torch.ones(3), torch.ones(3, 1)), (torch.ones(3, 1), torch.ones(2, 1))]
)
def test_sources_that_do_not_fit_are_refused(points: Tensor, strengths: Tensor) -> None:
    with pytest.raises(ValueError, match="strengths"):
        field_of({"alpha": torch.tensor(1.0), "points": points, "strengths": strengths, "laplace": torch.tensor(False)})


def test_other_nodes_count_as_the_groups_own() -> None:
    sens = torch.tensor([0, 0, 0, 1, 1, -1])
    groups = Groups.of(sens, torch.float64)
    shares = torch.nn.functional.one_hot(sens.clamp(min=0), 2).double() * (sens >= 0)[:, None]
    assert torch.equal(Groups.of_others(groups.scales, shares).membership, groups.membership)
    probabilities = torch.from_numpy(np.random.default_rng(0).uniform(size=(6, 3)))
    among = groups.among(probabilities)
    others = Groups.of_others(among.scales, shares, probabilities)
    torch.testing.assert_close(others.membership, among.membership)
    assert others.blocks == among.blocks == 3
