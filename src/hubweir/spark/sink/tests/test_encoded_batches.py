from array import array

import pyarrow as pa
import pytest

from hubweir.client.event_batch import data_section, encode_event
from hubweir.spark.errors import IllegalRow
from hubweir.spark.sink.encoded_batches import encoded_batches
from hubweir.spark.sink.row_targets import EventRows
from hubweir.spark.sink.sink_columns import variable

BODIES = [b"%03d" % number * 10 for number in range(10)]
ROWS = EventRows(10, variable(pa.array(BODIES)), None, None, 101, 7)
ORDER = array("q", range(9, -1, -1))


def test_batches_are_as_large_as_the_limit_lets_them_be() -> None:
    event = data_section(encode_event(BODIES[0]))
    made = list(encoded_batches(ROWS, None, ORDER, 2, 9, 3 * len(event)))
    assert [(each.first, each.end) for each in made] == [(2, 5), (5, 8), (8, 9)]
    assert made[2].name == "rows 102 to 102 of task 7"
    assert b"".join(each.payload for each in made) == b"".join(
        data_section(encode_event(BODIES[row])) for row in range(7, 0, -1)
    )


def test_a_row_over_the_limit_is_named() -> None:
    with pytest.raises(IllegalRow, match="row 110 of task 7 is too large: .* over the 20 bytes"):
        list(encoded_batches(ROWS, None, ORDER, 0, 10, 20))


def test_buffers_that_lie_are_refused() -> None:
    spoiled = EventRows(10, (None, ROWS.body[1], b"", 0), None, None, 1)
    with pytest.raises(IllegalRow, match="row 10 of task 0 came damaged"):
        list(encoded_batches(spoiled, None, ORDER, 0, 10, 1_000))
