"""Arrow buffers as the sink gets them, in plain Python: values of a row, checked before they are read."""

from __future__ import annotations

from array import array

from hubweir.errors import KernelRefusal
from hubweir.kernels.columns_contract import MapColumn, Variable
from hubweir.kernels.pure_batches import Readable
from hubweir.kernels.pure_values import Malformed


def offsets_of(buffer: Readable) -> memoryview:
    """32-bit offsets as numbers; KernelRefusal when the buffer holds no whole ones."""
    view = memoryview(buffer)
    if view.nbytes % 4:
        raise KernelRefusal(f"{view.nbytes} bytes are no 32-bit offsets")
    return view.cast("B").cast("i")


class VariableColumn:
    """A string or binary array of at least `rows` rows: bytes or None for each."""

    def __init__(self, column: Variable, rows: int) -> None:
        validity, offsets, content, self._first = column
        self._offsets, self._content = offsets_of(offsets), memoryview(content).cast("B")
        self._validity = None if validity is None else memoryview(validity).cast("B")
        check_column(self._first, rows, self._offsets, self._validity)

    def __getitem__(self, row: int) -> bytes | None:
        at = self._first + row
        if not is_valid(self._validity, at):
            return None
        if at + 1 >= len(self._offsets):
            raise Malformed
        start, end = self._offsets[at], self._offsets[at + 1]
        if not 0 <= start <= end <= len(self._content):
            raise Malformed
        return bytes(self._content[start:end])


class TextMapColumn:
    """A map<string, string> array of at least `rows` rows: the entries of each, none for a null map."""

    def __init__(self, column: MapColumn, rows: int) -> None:
        validity, offsets, self._first, keys, values = column
        self._offsets = offsets_of(offsets)
        self._validity = None if validity is None else memoryview(validity).cast("B")
        check_column(self._first, rows, self._offsets, self._validity)
        self._keys, self._values = VariableColumn(keys, 0), VariableColumn(values, 0)

    def __getitem__(self, row: int) -> list[tuple[bytes, bytes | None]]:
        at = self._first + row
        if not is_valid(self._validity, at):
            return []
        start, end = self._offsets[at], self._offsets[at + 1]
        if not 0 <= start <= end:
            raise Malformed
        entries = []
        for entry in range(start, end):
            key = self._keys[entry]
            if key is None:
                raise Malformed
            entries.append((key, self._values[entry]))
        return entries


def check_column(first: int, rows: int, offsets: memoryview, validity: memoryview | None) -> None:
    """Refuse a column whose buffers do not have this many rows."""
    if first < 0 or (rows and len(offsets) < first + rows + 1):
        raise KernelRefusal(f"{len(offsets)} offsets are not those of {rows} rows from {first} on")
    if validity is not None and 8 * len(validity) < first + rows:
        raise KernelRefusal(f"a bitmap of {len(validity)} bytes is not that of {rows} rows from {first} on")


def is_valid(validity: memoryview | None, at: int) -> bool:
    if validity is None:
        return True
    if at >> 3 >= len(validity):
        raise Malformed
    return bool(validity[at >> 3] >> (at & 7) & 1)


def places(order: array[int] | memoryview | None, first: int, last: int) -> list[int]:
    """The row numbers at places first to last of order."""
    if not 0 <= first <= last or (order is not None and len(order) < last):
        raise KernelRefusal(f"places {first} to {last} do not lie in the order")
    rows = list(range(first, last)) if order is None else list(order[first:last])
    if any(row < 0 for row in rows):
        raise KernelRefusal("a row number in the order is negative")
    return rows
