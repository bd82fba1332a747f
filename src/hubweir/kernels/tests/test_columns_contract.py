"""The compiled copies of the contract's numbers and of other tables agree with the pages that own them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hubweir.kernels import columns_contract
from hubweir.kernels.capture import capture_block
from hubweir.kernels.columns import column_buffers, partitions, text
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
    names_page = page("messages/property_names.pxd")
    names = re.findall(r'"([a-z-]+)"', names_page)
    (sizes,) = re.findall(r"sizes\[13\] = \{([0-9, ]+)\}", names_page)
    assert [name.encode() for name in names] == list(text.PROPERTY_NAMES)
    assert [int(size) for size in sizes.split(",")] == [len(name) for name in text.PROPERTY_NAMES]


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("columns/text.pxd", "MOST_WIDTHLESS", text.MOST_WIDTHLESS),
        ("capture/avro.pxd", "MOST_ENTRIES", capture_block.MOST_ENTRIES),
        ("capture/avro.pxd", "LONG", capture_block.LONG),
        ("capture/avro.pxd", "DOUBLE", capture_block.DOUBLE),
        ("capture/avro.pxd", "STRING", capture_block.STRING),
        ("capture/avro.pxd", "BYTES", capture_block.BYTES),
        ("columns/column_buffers.pxd", "MOST_GROWTH", column_buffers._MOST_GROWTH),
        ("columns/column_buffers.pxd", "MOST_NAMES", column_buffers._MOST_NAMES),
        ("columns/_columns.pyx", "MOST_DIGITS", partitions._MOST_DIGITS),
    ],
)
def test_limits_are_the_same_compiled(name: str, number: str, expected: int) -> None:
    assert numbers_of_page(page(name))[number] == expected


@pytest.mark.parametrize(
    ("wanted", "module"),
    [("pure", "hubweir.kernels.columns.event_columns"), ("compiled", "hubweir.kernels.columns._columns")],
)
def test_the_environment_says_which_twins_run(compiled: SimpleNamespace, wanted: str, module: str) -> None:
    code = "from hubweir import kernels; print(kernels.which(), kernels.event_columns.__module__)"
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parent.parent), "HUBWEIR_KERNELS": wanted}
    run = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert run.stdout.split() == [wanted, module]
