from pathlib import Path

import pytest

from hubweir.spark.captured.places import (
    DEFAULT_FORMAT,
    BlobPlace,
    CapturedName,
    LocalPlace,
    name_pattern,
    parse_name,
    place_of,
)
from hubweir.spark.errors import IllegalCapture, IllegalOption

SECOND = 1_769_860_807  # 2026-01-31T12:00:07Z


def test_name_tells_partition_and_second() -> None:
    name = "ns/orders/3/2026/01/31/12/00/07.avro"
    found = parse_name(name_pattern(DEFAULT_FORMAT), "/captured", name, 99)
    assert found == CapturedName(name, 99, "3", SECOND, "/captured/ns/orders/3")


def test_place_may_lie_inside_the_name() -> None:
    found = parse_name(name_pattern(DEFAULT_FORMAT), "/captured/ns/orders/3/2026", "01/31/12/00/07.avro", 1)
    assert (found.partition_id, found.second) == ("3", SECOND)


def test_other_formats_are_read() -> None:
    text = "{EventHub}-{PartitionId}/{Year}{Month}{Day}T{Hour}{Minute}{Second}.{Namespace}"
    found = parse_name(name_pattern(text), "", "orders-3/20260131T120007.ns.avro", 1)
    assert (found.partition_id, found.second) == ("3", SECOND)


def test_files_of_one_partition_are_a_series() -> None:
    text = "{PartitionId}/{Year}{Month}{Day}T{Hour}{Minute}{Second}"
    paths = ("a/3/20260131T120007", "a/3/20260131T120008", "a/4/20260131T120008", "b/3/20260131T120007")
    series = [parse_name(name_pattern(text), "/captured", f"{path}.avro", 1).series for path in paths]
    assert series[0] == series[1] and len(set(series)) == 3


@pytest.mark.parametrize(
    "text", ["", "{PartitionId}", DEFAULT_FORMAT + "{Millisecond}", DEFAULT_FORMAT + "{Year}", "{Partitionid}"]
)
def test_format_without_its_tokens_is_refused(text: str) -> None:
    with pytest.raises(IllegalOption, match="archiveNameFormat"):
        name_pattern(text)


@pytest.mark.parametrize(
    "name", ["notes.avro", "ns/orders/x/2026/01/31/12/00/07.avro", "ns/o/3/2026/13/31/12/00/07.avro"]
)
def test_name_of_another_format_is_refused_and_not_skipped(name: str) -> None:
    with pytest.raises(IllegalCapture, match="archiveNameFormat"):
        parse_name(name_pattern(DEFAULT_FORMAT), "/captured", name, 1)


def test_folder_gives_its_finished_files_and_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "07.avro").write_bytes(b"0123456789")
    (tmp_path / "a" / "08.avro.tmp").write_bytes(b"open")
    for path in (str(tmp_path), tmp_path.as_uri()):
        place = place_of(path, {})
        assert isinstance(place, LocalPlace)
        assert list(place.files()) == [("a/07.avro", 10)]
        assert place.read("a/07.avro", 2, 5) == b"234"
        assert place.read("a/07.avro", 8, 50) == b"89"
    with pytest.raises(IllegalCapture, match="there is no folder"):
        list(LocalPlace(str(tmp_path / "none")).files())


def test_blob_store_gives_the_same(tmp_path: Path) -> None:
    """By obstore, over a store that is a folder; Azure's own stand-in is used in tests/spark."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "07.avro").write_bytes(b"0123456789")
    (tmp_path / "a" / "08.avro.tmp").write_bytes(b"open")
    place = BlobPlace(tmp_path.as_uri(), {})
    assert list(place.files()) == [("a/07.avro", 10)]
    assert place.read("a/07.avro", 2, 5) == b"234"
    assert place.prefix == str(tmp_path)


def test_address_that_no_store_has_is_refused() -> None:
    with pytest.raises(IllegalOption, match="gopher://x/y cannot be opened"):
        place_of("gopher://x/y", {})


def test_a_store_that_does_not_answer_is_one_line_without_a_secret() -> None:
    pytest.importorskip("obstore")
    settings = {
        "account_name": "films", "account_key": "c2VjcmV0", "endpoint": "http://127.0.0.1:1/films",
    }  # fmt: skip
    place = place_of("az://films/of/us", settings)
    for read in (lambda: list(place.files()), lambda: place.read("a.avro", 0, 9)):
        with pytest.raises(IllegalCapture, match="^az://films/of/us cannot be read: ") as refused:
            read()
        assert "\n" not in str(refused.value) and "c2VjcmV0" not in str(refused.value)
