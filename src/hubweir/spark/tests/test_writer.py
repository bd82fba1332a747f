import pickle
from collections.abc import Callable

import pytest

from hubweir.spark.errors import NotExactlyOnce
from hubweir.spark.tests.sink_rows import COLUMNS, rows
from hubweir.spark.write_options import parse_write_options
from hubweir.spark.writer import EventHubStreamWriter, EventHubWriter


def test_a_batch_write_has_one_name_in_all_its_tasks_and_no_other_write_has_it(
    options_of: Callable[..., dict[str, str]],
) -> None:
    options = parse_write_options(options_of("orders"))
    one, other = EventHubWriter(options, COLUMNS), EventHubWriter(options, COLUMNS)
    assert pickle.loads(pickle.dumps(one))._name == one._name != other._name


def test_rows_are_written_by_tasks_only(options_of: Callable[..., dict[str, str]]) -> None:
    options = parse_write_options(options_of("orders"))
    for writer in (EventHubWriter(options, COLUMNS), EventHubStreamWriter(options, COLUMNS)):
        with pytest.raises(NotExactlyOnce, match="Spark's tasks only"):
            writer.write(iter([rows([1])]))
