from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from hubweir.spark.source import small_ranges
from hubweir.spark.source.small_ranges import read_together


@dataclass
class Reader:
    """Of numbers start up to end, in batches of at most 10; writes what is done to it into `told`, which all share."""

    start: int
    end: int
    told: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return self.end - self.start

    def begin(self) -> None:
        self.told.append(f"begin {self.start}")

    def read(self) -> Iterator[pa.RecordBatch]:
        self.told.append(f"read {self.start}")
        for at in range(self.start, self.end, 10):
            yield pa.RecordBatch.from_pydict({"n": list(range(at, min(at + 10, self.end)))})

    def close(self) -> None:
        self.told.append(f"close {self.start}")


def readers(*lengths: int) -> tuple[list[Reader], list[str]]:
    """Of ranges that follow each other, and what will be done to them."""
    edges = [sum(lengths[:place]) for place in range(len(lengths) + 1)]
    told: list[str] = []
    return [Reader(start, end, told) for start, end in zip(edges, edges[1:], strict=False)], told


def read(*lengths: int, under_way: int = 1000, rows_a_batch: int = 10) -> tuple[list[list[int]], list[str]]:
    made, told = readers(*lengths)
    return [batch["n"].to_pylist() for batch in read_together(made, under_way, rows_a_batch)], told


def test_rows_of_small_ranges_share_batches_and_keep_their_order() -> None:
    batches, _ = read(3, 4, 2, 5, 1)
    assert [len(batch) for batch in batches] == [9, 6]
    assert sum(batches, []) == list(range(15))


def test_full_batches_are_passed_on_as_they_came() -> None:
    batches, _ = read(3, 20, 4)
    assert [len(batch) for batch in batches] == [3, 10, 10, 4]
    assert sum(batches, []) == list(range(27))


def test_large_rows_share_no_more_than_a_column_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow cuts what is too large for one column into two batches, of which the second would be lost."""
    monkeypatch.setattr(small_ranges, "_BYTES_A_BATCH", 60)
    batches, _ = read(3, 4, 2, 5, 1)  # of eight bytes each
    assert [len(batch) for batch in batches] == [7, 7, 1]
    assert sum(batches, []) == list(range(15))


def test_links_are_asked_for_before_the_first_is_read() -> None:
    _, told = read(3, 4, 2)
    assert told == ["begin 0", "begin 3", "begin 7", "read 0", "read 3", "read 7"]


def test_no_more_events_are_under_way_than_allowed() -> None:
    _, told = read(3, 4, 2, under_way=7)
    assert told == ["begin 0", "begin 3", "read 0", "begin 7", "read 3", "read 7"]
    batches, told = read(30, 4, under_way=7)  # larger than allowed by itself: alone
    assert told == ["begin 0", "read 0", "begin 30", "read 30"]
    assert sum(batches, []) == list(range(34))


def test_one_range_is_read_without_more() -> None:
    batches, told = read(25)
    assert [len(batch) for batch in batches] == [10, 10, 5]
    assert told == ["read 0"]


def test_every_link_is_given_back_when_nobody_reads_on() -> None:
    made, told = readers(15, 4, 2)
    reading = read_together(made, 1000, 10)
    next(reading)
    reading.close()
    assert [step for step in told if step.startswith("close")] == ["close 0", "close 15", "close 19"]
