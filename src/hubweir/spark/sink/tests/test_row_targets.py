from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hubweir.kernels import hash_key
from hubweir.spark.errors import IllegalRow
from hubweir.spark.sink.row_targets import TargetedRows, targeted_rows
from hubweir.spark.sink.sink_columns import sink_columns

NAMES = ("body", "partitionId", "partition", "partitionKey", "publisher")


def targeted(count: int = 4, *, first_number: int = 1, task: int = 0, **columns: list[Any]) -> TargetedRows:
    """A record batch of these columns, all string, for a hub of 4 partitions."""
    columns.setdefault("body", ["x"] * count)
    names = [name for name in NAMES if name in columns]
    batch = pa.record_batch([pa.array(columns[name], pa.string()) for name in names], names=names)
    found = sink_columns([(name, "string") for name in names])
    return targeted_rows(batch, found, partitions=4, first_number=first_number, task=task)


def by_partition(found: TargetedRows) -> list[list[int]]:
    return [list(found.order[start:end]) for start, end in zip(found.starts, found.starts[1:], strict=False)]


def test_ids_keys_and_turns() -> None:
    of_key = abs(hash_key(b"device")) % 4
    found = by_partition(targeted(partitionId=["3", None, "", "3"], partitionKey=[None, "device", None, ""]))
    assert 0 in found[3] and 3 in found[3] and 1 in found[of_key] and 2 in found[2]


def test_turns_go_on_over_record_batches() -> None:
    whole = by_partition(targeted(8, task=3))
    first, second = by_partition(targeted(3, task=3)), by_partition(targeted(5, first_number=4, task=3))
    assert whole == [[*a, *(row + 3 for row in b)] for a, b in zip(first, second, strict=True)]
    assert whole[3] == [0, 4]


def test_the_sources_partition_counts_where_nothing_else_does() -> None:
    of_key = abs(hash_key(b"device")) % 4
    other = str((of_key + 1) % 4)
    found = by_partition(
        targeted(4, partition=[other] * 4, partitionKey=["device", None, "", None], partitionId=[None, None, None, "2"])
    )
    assert 0 in found[of_key] and {1, 2} <= set(found[int(other)]) and 3 in found[2]


def test_rows_of_publishers_are_apart() -> None:
    found = targeted(4, publisher=["b", None, "a", "b"], partitionKey=["b", None, None, None], partition=["1"] * 4)
    assert {name: list(rows) for name, rows in found.publishers.items()} == {"a": [2], "b": [0, 3]}
    assert by_partition(found) == [[], [1], [], []]


@pytest.mark.parametrize("seed", range(20))
def test_many_publishers_in_any_mix_have_their_rows_and_no_others(seed: int) -> None:
    rng = Random(seed)
    count = rng.randrange(1, 60)
    names = [rng.choice([None, "", "a", "b", "c", "d"]) if seed else "a" for _ in range(count)]
    partitions = [rng.choice("0123") for _ in names]
    found = targeted(count, publisher=names, partition=partitions)
    assert {name: list(rows) for name, rows in found.publishers.items()} == {
        name: [row for row, each in enumerate(names) if each == name] for name in set(names) if name
    }
    assert by_partition(found) == [
        [row for row, each in enumerate(names) if not each and partitions[row] == partition] for partition in "0123"
    ]


def test_columns_of_nulls_cost_nothing() -> None:
    found = targeted(2, publisher=[None, None], partitionKey=[None, None], partitionId=[None, None])
    assert found.rows.keys is None and not found.publishers and by_partition(found) == [[0], [1], [], []]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"partitionId": [None, "1"], "partitionKey": [None, "k"]}, "row 12 of task 0 has a partitionId and"),
        ({"publisher": [None, "p"], "partitionId": [None, "1"]}, "row 12 of task 0 has a publisher and a partitionI"),
        ({"publisher": ["p", "p"], "partitionKey": ["p", "q"]}, "row 12 of task 0 has a publisher and a partitionK"),
        ({"partitionId": ["0", "4"]}, "row 12 of task 0 names partition '4' in partitionId, and .* has 0 to 3"),
        ({"partitionId": ["zero", "4"]}, "row 11 of task 0 names partition 'zero'"),
        ({"partition": ["0", "4"]}, "row 12 of task 0 names partition '4' in partition, .*: drop this column"),
        ({"partition": ["0", "0"], "partitionId": [None, "4"]}, "partition '4' in partitionId, .*: name one of these"),
        ({"partitionKey": ["k", "k" * 40_000]}, "row 12 of task 0 has a partitionKey of 40000 bytes"),
        ({"publisher": ["p", "p" * 129]}, "row 12 of task 0 has a publisher of 129 characters"),
    ],
)  # fmt: skip
def test_two_targets_and_unknown_ones_are_refused_with_the_row(columns: dict[str, list[Any]], text: str) -> None:
    with pytest.raises(IllegalRow, match=text):
        targeted(2, first_number=11, **columns)
    with pytest.raises(IllegalRow, match=text.replace("of task 0", "of task 3")):
        targeted(2, first_number=11, task=3, **columns)
