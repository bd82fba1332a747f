"""Every kernel test runs on both twins; the compiled one is skipped by name where it was not built."""

from __future__ import annotations

import importlib
from types import ModuleType, SimpleNamespace

import pytest

from hubweir.kernels import pure, pure_columns


def compiled_kernels() -> SimpleNamespace | None:
    """The compiled kernels under one name, or None when they were not built."""
    try:
        halves = [importlib.import_module(f"hubweir.kernels.{half}") for half in ("_amqp", "_record", "_keys")]
    except ImportError:
        return None
    found = {name: getattr(half, name) for half in halves for name in pure.__all__ if hasattr(half, name)}
    return SimpleNamespace(**found, crc32c_by_table=halves[1].crc32c_by_table)


@pytest.fixture(params=["pure", "compiled"])
def kernels(request: pytest.FixtureRequest) -> ModuleType | SimpleNamespace:
    if request.param == "pure":
        return pure
    return _or_skip(compiled_kernels())


@pytest.fixture
def compiled() -> SimpleNamespace:
    return _or_skip(compiled_kernels())


def compiled_column_kernels() -> SimpleNamespace | None:
    """The compiled kernels of columns under one name, or None when they were not built."""
    try:
        halves = [importlib.import_module(f"hubweir.kernels.{half}") for half in ("_columns", "_capture")]
    except ImportError:
        return None
    return SimpleNamespace(
        **{name: getattr(half, name) for half in halves for name in dir(half) if name in pure_columns.__all__}
    )


@pytest.fixture(params=["pure", "compiled"])
def column_kernels(request: pytest.FixtureRequest) -> ModuleType | SimpleNamespace:
    if request.param == "pure":
        return pure_columns
    return _or_skip(compiled_column_kernels())


@pytest.fixture
def compiled_columns() -> SimpleNamespace:
    return _or_skip(compiled_column_kernels())


def _or_skip(found: SimpleNamespace | None) -> SimpleNamespace:
    if found is None:
        pytest.skip("the compiled kernels are not built: python setup.py build_ext --inplace")
    return found
