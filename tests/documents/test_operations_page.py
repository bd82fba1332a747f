"""docs/on_disk.md names the operations of queues and topics as the code does, each by the same code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.queue import operation
from hubweir.topic import topic_operation

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "on_disk.md").read_text()


def tables(text: str) -> Iterator[list[str]]:
    """The rows of each table of operations, without its head."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("| code | name "):
            end = next(end for end in range(at, len(lines)) if not lines[end].startswith("|"))
            yield lines[at + 2 : end]


def codes(rows: list[str]) -> dict[str, int]:
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {name: int(code) for code, name, *_ in cells}


@pytest.mark.parametrize("module", [operation, topic_operation])
def test_a_table_of_operations_is_on_the_page_as_it_is_in_the_code(module: ModuleType) -> None:
    [table] = tables(module.__doc__ or "")
    assert table in list(tables(PAGE))
    for name, code in codes(table).items():
        assert getattr(module, name) == code, name


Decode = Callable[[memoryview], object]


def is_known(decode: Decode, code: int) -> bool:
    """A code that is not known is of a later version; a record of one byte is none, whatever its code."""
    with suppress(CorruptStore):
        try:
            decode(memoryview(bytes((code,))))
        except NewerFormat:
            return False
    return True


@pytest.mark.parametrize(
    ("first", "decode"),
    [(1, operation.decode_operation), (topic_operation.FIRST_CODE, topic_operation.decode_topic_operation)],
)
def test_the_page_leaves_out_no_operation_that_the_code_reads(first: int, decode: Decode) -> None:
    [told] = [found for found in map(codes, tables(PAGE)) if first in found.values()]
    assert list(told.values()) == [code for code in range(256) if is_known(decode, code)]


def test_the_page_has_both_tables_and_no_other() -> None:
    assert [min(codes(table).values()) for table in tables(PAGE)] == [1, topic_operation.FIRST_CODE]
