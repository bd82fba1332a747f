"""Arrow buffers as the sink gets them, in plain Python: values of a row, checked before they are read."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from hubweir.errors import KernelRefusal
from hubweir.kernels.columns_contract import MOST_COLUMN_BYTES, MapColumn, Variable
from hubweir.kernels.contract import Readable
from hubweir.kernels.messages.sections import Malformed


class _Offsets:
    """Offsets with a bitmap: where the value of a row starts and ends."""

    def __init__(self, validity: Readable | None, offsets: Readable, first: int) -> None:
        view = memoryview(offsets).cast("B")
        if not 0 <= first <= MOST_COLUMN_BYTES or len(view) % 4:
            raise KernelRefusal(f"{len(view)} bytes of offsets from {first} on are no column")
        self._offsets, self._first = view.cast("i"), first
        self._validity = None if validity is None else memoryview(validity).cast("B")

    def range_of(self, row: int) -> tuple[int, int] | None:
        """Start and end of the value of a row; None when it is null. Malformed when it is not there."""
        at = self._first + row
        if row < 0 or at + 1 >= len(self._offsets):
            raise Malformed
        if self._validity is not None:
            if at >> 3 >= len(self._validity):
                raise Malformed
            if not self._validity[at >> 3] >> (at & 7) & 1:
                return None
        start, end = self._offsets[at], self._offsets[at + 1]
        if not 0 <= start <= end:
            raise Malformed
        return start, end


class VariableColumn:
    """A string or binary array: bytes or None for each row."""

    def __init__(self, column: Variable) -> None:
        validity, offsets, content, first = column
        self._offsets, self._content = _Offsets(validity, offsets, first), memoryview(content).cast("B")

    def __getitem__(self, row: int) -> bytes | None:
        found = self._offsets.range_of(row)
        if found is None:
            return None
        if found[1] > len(self._content):
            raise Malformed
        return bytes(self._content[slice(*found)])


class TextMapColumn:
    """A map<string, string> array: the entries of each row, none for a null map."""

    def __init__(self, column: MapColumn) -> None:
        validity, offsets, first, keys, values = column
        self._offsets = _Offsets(validity, offsets, first)
        self._keys, self._values = VariableColumn(keys), VariableColumn(values)

    def __getitem__(self, row: int) -> list[tuple[bytes, bytes | None]]:
        entries = []
        for entry in range(*(self._offsets.range_of(row) or (0, 0))):
            key = self._keys[entry]
            if key is None:
                raise Malformed
            entries.append((key, self._values[entry]))
        return entries


def rows_at(order: array[int] | memoryview | None, first: int, last: int) -> Iterator[int]:
    """The row numbers at places first to last of order."""
    if not 0 <= first <= last or (order is not None and len(order) < last):
        raise KernelRefusal(f"places {first} to {last} do not lie in the order")
    if order is None:
        return iter(range(first, last))
    return (order[place] for place in range(first, last))
