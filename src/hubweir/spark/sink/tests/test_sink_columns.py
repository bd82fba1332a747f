import pyarrow as pa
import pytest

from hubweir.spark.errors import IllegalOption
from hubweir.spark.sink.sink_columns import body_column, map_column, sink_columns, text_column, variable

MAP = pa.map_(pa.string(), pa.string())


def test_columns_are_found_by_name_in_any_case_and_others_are_left_out() -> None:
    found = sink_columns(
        [
            ("offset", "string"),
            ("BODY", "binary"),
            ("partitionkey", "varchar(20)"),
            ("properties", "map<string,string>"),
        ]
    )
    assert (found.body, found.partition_key, found.properties) == (1, 2, 3)
    assert (found.partition, found.partition_id, found.publisher) == (None, None, None)
    assert found.place("Offset") == 0
    with pytest.raises(IllegalOption, match="no column 'time'; there are offset, BODY"):
        found.place("time")


@pytest.mark.parametrize(
    "kind", ["map<string,string>", "array<int>", "struct<a:array<int>>", "interval day to second", "variant"]
)
def test_what_has_no_order_is_nothing_to_sort_by(kind: str) -> None:
    found = sink_columns([("body", "string"), ("odd", kind), ("even", "struct<a:int>")])
    assert found.place("even") == 2
    with pytest.raises(IllegalOption, match=f"sortBy: column odd is {kind}, which has no order"):
        found.place("Odd")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ([("value", "string")], "no column body: select"),
        ([("body", "struct<a:int>")], "column body is struct<a:int>, and is written as string"),
        ([("body", "string"), ("Body", "string")], "column body is there 2 times"),
        ([("body", "string"), ("partitionId", "double")], "column partitionId is double"),
        ([("body", "string"), ("properties", "map<string,int>")], "column properties is map<string,int>"),
        ([("body", "string"), ("h", "interval month")], "column h is interval month, which does not reach a Python"),
    ],
)
def test_what_cannot_be_written_is_refused(fields: list[tuple[str, str]], text: str) -> None:
    with pytest.raises(IllegalOption, match=text):
        sink_columns(fields)


def test_columns_come_as_the_kernels_take_them() -> None:
    assert text_column(pa.array([3, None], pa.int32())).to_pylist() == ["3", None]
    large = body_column(pa.array([b"a", None], pa.large_binary()))
    assert (large.type, large.to_pylist()) == (pa.binary(), [b"a", None])
    validity, offsets, content, offset = variable(pa.array(["ab", None, "c"]).slice(1))
    assert (offset, bytes(content), list(memoryview(offsets).cast("B").cast("i"))[:4]) == (1, b"abc", [0, 2, 2, 3])
    assert validity is not None
    entries = map_column(pa.array([[("k", "v")], None], MAP))
    assert bytes(entries[3][2]) == b"k" and bytes(entries[4][2]) == b"v"


def test_large_maps_and_empty_columns_are_taken() -> None:
    large = pa.array([[("k", "v")]], pa.map_(pa.large_string(), pa.large_string()))
    assert bytes(map_column(large)[3][2]) == b"k"
    assert variable(pa.array([], pa.string()))[3] == 0
