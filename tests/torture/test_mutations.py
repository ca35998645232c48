"""Damaged files of every kind: one error that names the file, or a result; no traceback, no hang."""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from tests.methods.ingredients import small_graph
from tests.torture.damage import damage, whole_content
from tests.torture.stored import NAMES, Kind, kinds, write_all
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from fairpass.errors import ModelFileError
from fairpass.methods import NodeClassifier
from fairpass.methods.header import KIND
from fairpass.training.tensors import read_tensors, write_tensors

SEED, EACH, FEW = 0, 40, 15


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Kind]:
    folder = tmp_path_factory.mktemp("stored")
    write_all(folder)
    return kinds(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_one_error_that_names_it(
    name: str, found: Mapping[str, Kind], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    kind = found[name]
    whole = whole_content(kind, tmp_path / "whole")
    for number in range(FEW if kind.few else EACH):
        _, fault = damage(kind, Random(f"{SEED} {name} {number}"), tmp_path / str(number), whole)
        assert fault is None, number


def test_every_whole_file_is_read(found: Mapping[str, Kind], tmp_path: Path) -> None:
    for name, kind in found.items():
        if name != "data":  # its tables do not exist
            kind.use(kind.read(kind.copy_to(tmp_path / name)))


@pytest.mark.parametrize("dtype", [torch.long, torch.bool, torch.uint8])
def test_logits_of_another_type_are_refused(dtype: torch.dtype, found: Mapping[str, Kind], tmp_path: Path) -> None:
    file = Path(shutil.copy(found["model constant"].file, tmp_path))
    tensors, header = read_tensors(file, KIND)
    write_tensors(file, KIND, {name: tensor.to(dtype) for name, tensor in tensors.items()}, header)
    with pytest.raises(ModelFileError, match=file.name):
        NodeClassifier.load(file)


def test_a_header_without_a_seed_decides_with_the_default(found: Mapping[str, Kind], tmp_path: Path) -> None:
    file = Path(shutil.copy(found["model thresholds"].file, tmp_path))
    tensors, header = read_tensors(file, KIND)
    del header["training"]["seed"]
    write_tensors(file, KIND, tensors, header)
    data = small_graph()
    expected = NodeClassifier.load(found["model thresholds"].file).predict(data)
    assert torch.equal(NodeClassifier.load(file).predict(data), expected)


def test_a_reference_with_too_few_fields_is_refused(found: Mapping[str, Kind], tmp_path: Path) -> None:
    file = Path(shutil.copy(found["model gmmd-s"].file, tmp_path))
    tensors, header = read_tensors(file, KIND)
    name = "reference.layers.0.lowered"
    write_tensors(file, KIND, {**tensors, name: torch.zeros_like(tensors[name])}, header)
    with pytest.raises(ModelFileError, match="a kernel field for every step"):
        NodeClassifier.load(file)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gmmd", {"parameters": {"K": 10**9}}),
        ("gmmd", {"parameters": {"K": 10**6}}),
        ("gmmd", {"parameters": {"fair_steps": 10**6}}),
        ("gmmd", {"parameters": {"num_layers": 10**6}}),
        ("gmmd", {"parameters": {"hidden": 10**7}}),
        ("gmmd", {"parameters": {"hidden": 10**5}}),  # the most that a parameter may be
        ("gmmd", {"parameters": {"hidden": 10**5, "num_layers": 100}}),
        ("gmmd", {"sizes": {"num_features": 10**8, "feature_names": []}}),
        ("gmmd", {"sizes": {"num_classes": 10**3}}),
        ("gmmd", {"sizes": {"num_groups": 10**3}}),
        ("gmmd", {"sizes": {"num_classes": 10**6}}),
        ("fmp", {"parameters": {"K": 10**6}}),
    ],
)
def test_a_header_cannot_ask_for_more_than_its_tensors_have(
    name: str, changes: dict[str, Any], found: Mapping[str, Kind], tmp_path: Path
) -> None:
    file = Path(shutil.copy(found[name].file, tmp_path))
    tensors, header = read_tensors(file, KIND)
    write_tensors(file, KIND, tensors, {**header, **{part: {**header[part], **changes[part]} for part in changes}})
    stored = sum(tensor.numel() for tensor in tensors.values())

    def check(module: nn.Module, name: str, part: Tensor | None) -> None:
        # Before its memory is used; and not by the error, as one for want of memory is a `ModelFileError`, too.
        assert part is None or part.is_meta or part.numel() <= stored, f"{name} has {part.numel():,} numbers"

    hooks = [register_module_parameter_registration_hook(check), register_module_buffer_registration_hook(check)]
    try:
        with pytest.raises(ModelFileError, match=file.name):
            NodeClassifier.load(file)
    finally:
        for hook in hooks:
            hook.remove()
