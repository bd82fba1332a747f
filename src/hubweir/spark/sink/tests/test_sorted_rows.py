import random

import pyarrow as pa
import pytest

from hubweir.spark.errors import IllegalOption
from hubweir.spark.sink.sink_columns import sink_columns
from hubweir.spark.sink.sorted_rows import ROWS_A_BATCH, sorted_rows

FIELDS = [("body", "string"), ("at", "bigint"), ("properties", "map<string,string>")]
COLUMNS = sink_columns(FIELDS)


def batch(numbers: list[int]) -> pa.RecordBatch:
    maps = pa.array([[("n", str(number))] for number in numbers], pa.map_(pa.string(), pa.string()))
    return pa.record_batch(
        [pa.array([f"{number:06d}" for number in numbers]), pa.array([number // 3 for number in numbers]), maps],
        names=[name for name, _ in FIELDS],
    )


def test_any_order_gives_the_same_rows_in_the_same_order() -> None:
    numbers = list(range(ROWS_A_BATCH + 500))
    found = []
    for seed in (1, 2):
        random.Random(seed).shuffle(numbers)
        batches = [batch(numbers[:700]), batch([]), batch(numbers[700:])]
        made = list(sorted_rows(batches, COLUMNS, ("at",)))
        assert [len(each) for each in made] == [ROWS_A_BATCH, 500]
        found.append([(row[0], row[2]) for each in made for row in zip(*each.to_pydict().values(), strict=True)])
    assert found[0] == found[1] == [(f"{number:06d}", [("n", str(number))]) for number in range(ROWS_A_BATCH + 500)]


def test_no_rows_are_no_batches_and_unknown_columns_are_refused() -> None:
    assert list(sorted_rows([batch([])], COLUMNS, ("at",))) == []
    with pytest.raises(IllegalOption, match="no column 'time'"):
        list(sorted_rows([batch([1])], COLUMNS, ("time",)))
