"""Every kernel test runs on both twins; the compiled one is skipped by name where it was not built."""

from __future__ import annotations

import importlib
from types import ModuleType, SimpleNamespace

import pytest

from hubweir.kernels import DOORS, twins


def compiled_kernels() -> SimpleNamespace | None:
    """The compiled kernels under one name, or None when they were not built."""
    try:
        doors = [importlib.import_module(f"hubweir.kernels.{room}._{room}") for room in DOORS]
    except ImportError:
        return None
    found = {name: value for door in doors for name, value in vars(door).items()}
    return SimpleNamespace(**{name: found[name] for name in (*twins.KERNELS, "crc32c_by_table")})


@pytest.fixture(params=["pure", "compiled"])
def kernels(request: pytest.FixtureRequest) -> ModuleType | SimpleNamespace:
    if request.param == "pure":
        return twins
    return _or_skip(compiled_kernels())


@pytest.fixture
def compiled() -> SimpleNamespace:
    return _or_skip(compiled_kernels())


def _or_skip(found: SimpleNamespace | None) -> SimpleNamespace:
    if found is None:
        pytest.skip("the compiled kernels are not built: python setup.py build_ext --inplace")
    return found
