"""Two attempts at one captured file, of which Spark believes the first to be dead."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubweir.capture.destination import LocalFolder
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.pipelines.captured.local_attempts import LocalAttempts

NAME = "ns/orders/0/00.avro"


def below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_late_attempt_publishes_nothing_of_another_ones(tmp_path: Path) -> None:
    place = LocalAttempts(str(tmp_path))
    late = place.begin(NAME)
    late.write([b"who"])
    again = LocalAttempts(str(tmp_path)).begin(NAME)
    again.write([b"wh"])
    with pytest.raises(FileNotFoundError):
        late.commit()
    late.abandon()
    assert not place.exists(NAME)
    again.write([b"ole"])
    again.commit()
    assert (tmp_path / NAME).read_bytes() == b"whole" and below(tmp_path) == ["00.avro"]


def test_control_one_name_for_both_publishes_half_a_file(tmp_path: Path) -> None:
    place = LocalFolder(SystemFiles(tmp_path), "")
    late = place.begin(NAME)
    again = place.begin(NAME)
    again.write([b"wh"])
    late.commit()
    assert (tmp_path / NAME).read_bytes() == b"wh"


def test_what_a_killed_attempt_left_is_gone_with_the_next_one_and_other_files_attempts_stay(tmp_path: Path) -> None:
    place = LocalAttempts(str(tmp_path))
    place.begin(NAME).write([b"killed"])
    other = place.begin("ns/orders/0/01.avro")
    place.begin(NAME).commit()
    other.commit()
    assert below(tmp_path) == ["00.avro", "01.avro"]


def test_a_name_may_be_as_long_as_a_file_system_takes(tmp_path: Path) -> None:
    name = "x" * 246 + ".avro"
    LocalAttempts(str(tmp_path)).begin(name).commit()
    assert below(tmp_path) == [name]
