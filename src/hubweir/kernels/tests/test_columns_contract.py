"""The compiled copies of the contract's numbers and of other tables agree with the pages that own them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hubweir.kernels import columns_contract, pure_capture, pure_column_buffers, pure_partitions, pure_text
from hubweir.kernels.tests.test_stored_batch import numbers_of_module, numbers_of_page

FOLDER = Path(columns_contract.__file__).parent


def page(name: str) -> str:
    return (FOLDER / name).read_text()


def test_every_number_of_the_contract_is_the_same_compiled() -> None:
    assert numbers_of_page(page("columns_contract.pxd")) == numbers_of_module(columns_contract)


def test_a_planted_wrong_number_is_found() -> None:
    wrong = page("columns_contract.pxd").replace("ROWS_ROOM = 1", "ROWS_ROOM = 2")
    with pytest.raises(AssertionError):
        assert numbers_of_page(wrong) == numbers_of_module(columns_contract)


def test_the_names_of_properties_are_the_same_compiled() -> None:
    text = page("property_names.pxd")
    names = re.findall(r'"([a-z-]+)"', text)
    (sizes,) = re.findall(r"sizes\[13\] = \{([0-9, ]+)\}", text)
    assert [name.encode() for name in names] == list(pure_text.PROPERTY_NAMES)
    assert [int(size) for size in sizes.split(",")] == [len(name) for name in pure_text.PROPERTY_NAMES]


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("text.pxd", "MOST_WIDTHLESS", pure_text.MOST_WIDTHLESS),
        ("avro.pxd", "MOST_ENTRIES", pure_capture.MOST_ENTRIES),
        ("avro.pxd", "LONG", pure_capture.LONG),
        ("avro.pxd", "DOUBLE", pure_capture.DOUBLE),
        ("avro.pxd", "STRING", pure_capture.STRING),
        ("avro.pxd", "BYTES", pure_capture.BYTES),
        ("columns.pxd", "MOST_GROWTH", pure_column_buffers._MOST_GROWTH),
        ("columns.pxd", "MOST_NAMES", pure_column_buffers._MOST_NAMES),
        ("_columns.pyx", "MOST_DIGITS", pure_partitions._MOST_DIGITS),
    ],
)
def test_limits_are_the_same_compiled(name: str, number: str, expected: int) -> None:
    assert numbers_of_page(page(name))[number] == expected


@pytest.mark.parametrize(
    ("wanted", "module"), [("pure", "hubweir.kernels.pure_event_columns"), ("compiled", "hubweir.kernels._columns")]
)
def test_the_environment_says_which_twins_run(compiled_columns: SimpleNamespace, wanted: str, module: str) -> None:
    code = "from hubweir import kernels; print(kernels.which(), kernels.event_columns.__module__)"
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parent.parent), "HUBWEIR_KERNELS": wanted}
    run = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert run.stdout.split() == [wanted, module]
