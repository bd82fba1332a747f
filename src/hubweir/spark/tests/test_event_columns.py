import pytest

from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_columns import check_schema, chosen_columns


def test_schema_of_the_user_is_pruning() -> None:
    assert check_schema([("sequenceNumber", "bigint"), ("body", "binary")]) == ("sequenceNumber", "body")
    assert chosen_columns("Body, PARTITIONKEY") == ("body", "partitionKey")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ([], "no column"),
        ([("value", "binary")], "no column 'value'"),
        ([("body", "string")], "body as string, and it is binary: cast"),
        ([("Body", "binary")], "calls column 'body' 'Body'"),
        ([("body", "binary"), ("body", "binary")], "twice"),
    ],
)
def test_schema_that_events_do_not_have_is_refused(fields: list[tuple[str, str]], why: str) -> None:
    with pytest.raises(IllegalOption, match=why):
        check_schema(fields)
