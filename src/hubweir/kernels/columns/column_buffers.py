"""Column buffers in plain Python: what event_columns and read_capture_block append to (columns_contract.py)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from struct import pack

from hubweir.errors import KernelRefusal
from hubweir.kernels.columns_contract import (
    ALL_COLUMNS,
    COLUMN_BUFFERS,
    MAP_BUFFERS,
    MOST_COLUMN_BYTES,
    NUMBER_BUFFERS,
    TEXT_BUFFERS,
)

# Which column each buffer belongs to.
_OWNERS = {
    **{place: column for column, places in TEXT_BUFFERS.items() for place in places if place is not None},
    **{place: column for column, place in NUMBER_BUFFERS.items()},
    **{place: column for column, (entries, *pairs) in MAP_BUFFERS.items() for place in (entries, *pairs[0], *pairs[1])},
}
# The text of a value is at most this much longer than its bytes, and a row's names at most this long.
_MOST_GROWTH, _MOST_NAMES = 16, 4096

Entry = tuple[bytes, bytes]


class ColumnBuffers:
    """The columns of a mask, appended to row by row; KernelRefusal when they do not hold `rows` rows."""

    def __init__(self, columns: list[bytearray], mask: int, rows: int, most_bytes: int) -> None:
        if len(columns) != COLUMN_BUFFERS or not 0 <= mask <= ALL_COLUMNS or not 0 <= rows <= MOST_COLUMN_BYTES:
            raise KernelRefusal(f"{len(columns)} buffers, mask {mask} and {rows} rows are no columns")
        if len({id(buffer) for buffer in columns}) != COLUMN_BUFFERS:
            raise KernelRefusal("one buffer stands twice in the columns")
        if not 0 <= most_bytes <= MOST_COLUMN_BYTES:
            raise KernelRefusal(f"{most_bytes} is no limit for a column")
        self._columns, self._mask, self._most_bytes = columns, mask, most_bytes
        self.rows = rows
        for place, column in _OWNERS.items():
            if self.has(column):  # BufferError now, not in the middle of a row, when somebody holds a view of one
                columns[place].append(0)
                columns[place].pop()
        for column, (offsets, content, validity) in TEXT_BUFFERS.items():
            if self.has(column):
                self._check_offsets(offsets, content, rows)
                if validity is not None and len(columns[validity]) != (rows + 7) // 8:
                    raise KernelRefusal(f"buffer {validity} is no bitmap of {rows} rows")
        for column, buffer in NUMBER_BUFFERS.items():
            if self.has(column) and len(columns[buffer]) != 8 * rows:
                raise KernelRefusal(f"buffer {buffer} does not hold {rows} rows")
        for column, (entries, keys, values) in MAP_BUFFERS.items():
            if self.has(column):
                last = self._check_offsets(entries, None, rows)
                self._check_offsets(*keys, last)
                self._check_offsets(*values, last)

    def has(self, column: int) -> bool:
        return bool(self._mask >> column & 1)

    def has_room(self, size: int) -> bool:
        """Whether a row made from `size` bytes cannot make a column outgrow its limit."""
        most = self._most_bytes - _MOST_GROWTH * size - _MOST_NAMES
        wanted = [content for column, (_, content, _) in TEXT_BUFFERS.items() if self.has(column)]
        for column, (_, keys, values) in MAP_BUFFERS.items():
            wanted += [keys[1], values[1]] if self.has(column) else []
        return all(len(self._columns[buffer]) <= most for buffer in wanted)

    def append_number(self, column: int, value: int) -> None:
        self._columns[NUMBER_BUFFERS[column]] += array("q", [value]).tobytes()

    def append_text(self, column: int, value: bytes | None) -> None:
        offsets, content, validity = TEXT_BUFFERS[column]
        if validity is not None:
            bits = self._columns[validity]
            if self.rows % 8 == 0:
                bits.append(0)
            bits[-1] |= (value is not None) << self.rows % 8
        self._append(offsets, content, value or b"")

    def append_map(self, column: int, entries: Iterable[Entry]) -> None:
        offsets, keys, values = MAP_BUFFERS[column]
        for key, value in entries:
            self._append(*keys, key)
            self._append(*values, value)
        for child in (keys, values):
            self._begin(child[0])
        self._begin(offsets)
        self._columns[offsets] += pack("=i", len(self._columns[keys[0]]) // 4 - 1)

    def _begin(self, offsets: int) -> None:
        if not self._columns[offsets]:
            self._columns[offsets] += bytes(4)

    def _append(self, offsets: int, content: int, value: bytes) -> None:
        self._begin(offsets)
        self._columns[content] += value
        self._columns[offsets] += pack("=i", len(self._columns[content]))

    def _check_offsets(self, offsets: int, content: int | None, rows: int) -> int:
        """Refuse offsets that are not of rows rows or do not end where their content ends; return the last one."""
        buffer = self._columns[offsets]
        if not buffer and not rows and (content is None or not self._columns[content]):
            return 0
        last = int.from_bytes(buffer[-4:], "little") if array("H", [1]).tobytes()[0] else int.from_bytes(buffer[-4:])
        if len(buffer) != 4 * (rows + 1) or (content is not None and last != len(self._columns[content])):
            raise KernelRefusal(f"buffer {offsets} does not hold the offsets of {rows} rows")
        return last
