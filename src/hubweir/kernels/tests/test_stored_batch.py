"""The format on disk stands once: its struct, its positions and the compiled copy of its numbers agree."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from hubweir.kernels import contract, stored_batch
from hubweir.kernels.messages import sections
from hubweir.kernels.stored_batch import (
    COMPLETED_STRUCT,
    HEADER_SIZE,
    HEADER_STRUCT,
    MADE_STRUCT,
    MAGIC,
    PRODUCER_SIZE,
    PRODUCER_STRUCT,
    RECORD_HEADER_SIZE,
    RECORD_STRUCT,
)

FOLDER = Path(stored_batch.__file__).parent


def numbers_of_page(text: str) -> dict[str, int]:
    """The `NAME = number` lines of a .pxd page."""
    return {name: int(value, 0) for name, value in re.findall(r"^    ([A-Z][A-Z0-9_]*) = (-?\w+)", text, re.MULTILINE)}


def numbers_of_module(module: ModuleType) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, int)}


def test_structs_and_positions_of_the_header_agree() -> None:
    from struct import calcsize

    assert calcsize(HEADER_STRUCT) == HEADER_SIZE
    assert calcsize(MADE_STRUCT) == stored_batch.AT_WRITER_EPOCH
    assert calcsize(MADE_STRUCT) + calcsize(COMPLETED_STRUCT) == stored_batch.AT_HEADER_CRC
    assert calcsize(PRODUCER_STRUCT) == PRODUCER_SIZE
    assert calcsize(RECORD_STRUCT) == RECORD_HEADER_SIZE
    assert calcsize(">4sBBHIIIIIIQQQ") == stored_batch.AT_ENQUEUED_TIME


def test_every_number_of_the_format_is_the_same_compiled() -> None:
    page = numbers_of_page((FOLDER / "stored_batch.pxd").read_text())
    assert page == numbers_of_module(stored_batch) | {"MAGIC": int.from_bytes(MAGIC, "big")}


def test_every_number_of_the_contract_is_the_same_compiled() -> None:
    assert numbers_of_page((FOLDER / "contract.pxd").read_text()) == numbers_of_module(contract)


def test_the_constructors_of_both_twins_are_the_same_table() -> None:
    text = (FOLDER / "messages/sections.pxd").read_text()
    names = numbers_of_page(text)
    rows = re.findall(r"/\* ([0-9A-F])_ \*/ ([0-9, ]+)", text)
    table = [int(number) for _, row in rows for number in row.replace(",", " ").split()]
    expected = [names["ILLEGAL"]] * 256
    for code, width in sections.FIXED.items():
        expected[code] = width
    for code, width in sections.VARIABLE.items():
        expected[code] = names["VARIABLE_8" if width == 1 else "VARIABLE_32"]
    for code, width in sections.COMPOUND.items():
        expected[code] = names["COMPOUND_8" if width == 1 else "COMPOUND_32"]
    assert table == expected
    assert names["MAX_DEPTH"] == sections.MAX_DEPTH


def test_a_planted_wrong_number_is_found() -> None:
    text = (FOLDER / "stored_batch.pxd").read_text()
    wrong = text.replace("AT_FOOTER = 28", "AT_FOOTER = 24")
    assert wrong != text
    with pytest.raises(AssertionError):
        assert numbers_of_page(wrong) == numbers_of_page(text)
