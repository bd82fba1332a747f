"""The parts of dead letters that need no session; what is dead, and that it comes once, is in tests/spark."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from hubweir.kernels.contract import PROPERTIES_LIMIT
from hubweir.pipelines import dead_letters
from hubweir.pipelines.dead_letters import path, write


def test_any_name_of_a_column_is_one_step_of_a_path() -> None:
    assert [path(name) for name in ("tea", "a.b", "it's", "ü")] == ["$['tea']", "$['a.b']", "$['it\\'s']", "$['ü']"]


def test_what_is_not_cut_or_left_out_leaves_room_for_what_a_dead_letter_is_given() -> None:
    """Names, a hub's name of 256 characters, the longest reason, four numbers, and what AMQP puts around them."""
    names = ("hub", "partition", "sequence-number", "reason", "body-size", "properties-size")
    most = sum(len(f"dead-letter-{name}") + dead_letters._PROPERTY_BYTES for name in names)
    most += 256 + 4 * dead_letters.REASON_CHARACTERS + 4 * 20 + 100
    assert most < PROPERTIES_LIMIT - dead_letters._OWN_BYTES < dead_letters._ROOM_BYTES


class Rows:
    """A DataFrame and its writer: what was asked of it."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        self.write = self

    def select(self, *columns: str) -> Rows:
        self.asked["columns"] = columns
        return self

    def format(self, name: str) -> Rows:
        self.asked["format"] = name
        return self

    def options(self, **given: str) -> Rows:
        self.asked["options"] = given
        return self

    def mode(self, name: str) -> Rows:
        self.asked["mode"] = name
        return self

    def save(self) -> None:
        self.asked["is_saved"] = True


def test_a_write_is_named_by_query_and_batch_so_a_repeat_is_known() -> None:
    rows = Rows()
    write(rows, {"eventHub": "dead"}, "identity/dead", 7)  # type: ignore[arg-type]
    assert rows.asked == {
        "columns": ("body", "partitionKey", "properties"), "format": "eventhubs", "mode": "append", "is_saved": True,
        "options": {"eventHub": "dead", "queryId": "identity/dead", "batchId": "7"},
    }  # fmt: skip
