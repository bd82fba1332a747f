from __future__ import annotations

import pytest

from hubweir.env import join_path
from hubweir.messaging_store.disk.layout import SegmentName, is_log_id, parse_segment_name


def test_a_segments_name_says_its_first_index_and_epoch() -> None:
    name = SegmentName(0xAB, 1234)
    assert name.file_name == "00000000000000001234-000000ab.log"
    assert parse_segment_name(name.file_name) == name


@pytest.mark.parametrize(
    "name", ["", "snapshot", "1-2.log", "00000000000000001234-000000AB.log", "00000000000000001234-000000ab.log.new"]
)
def test_other_files_are_no_segments(name: str) -> None:
    assert parse_segment_name(name) is None


def test_only_generated_ids_name_logs() -> None:
    assert is_log_id("0123456789abcdef" * 2)
    assert not any(map(is_log_id, ["", "..", "0123456789ABCDEF" * 2, "a" * 31, "a" * 33, "a" * 32 + "\n"]))


def test_a_path_leaves_out_the_root() -> None:
    assert join_path("", "EPOCH") == "EPOCH" and join_path("store-0", "logs", "x") == "store-0/logs/x"
