"""Names of files under way: one owner each, one each owner, and a place is a place however it is written."""

from __future__ import annotations

from hubweir.broker.claimed_names import ClaimedNames
from hubweir.namespace.capture_description import CaptureDestination

LOCAL, BLOB, LAKE = (
    CaptureDestination.LOCAL_FOLDER,
    CaptureDestination.AZURE_BLOCK_BLOB,
    CaptureDestination.AZURE_DATA_LAKE,
)


def test_a_name_has_one_owner_until_it_is_released() -> None:
    names = ClaimedNames()
    assert names.claim("one", BLOB, "films", "a.avro")
    assert names.claim("one", BLOB, "films", "a.avro")
    assert not names.claim("other", BLOB, "films", "a.avro")
    assert names.claim("other", BLOB, "songs", "a.avro")
    names.release("one")
    assert names.claim("third", BLOB, "films", "a.avro")


def test_an_owner_has_one_name() -> None:
    names = ClaimedNames()
    assert names.claim("one", LOCAL, "", "a.avro") and names.claim("one", LOCAL, "", "b.avro")
    assert names.claim("other", LOCAL, "", "a.avro")


def test_one_place_by_two_words_is_one_place() -> None:
    names = ClaimedNames()
    assert names.claim("one", BLOB, "films", "a.avro") and not names.claim("other", LAKE, "films", "a.avro")
    assert names.claim("third", LOCAL, "films", "a.avro") and not names.claim("fourth", LOCAL, "", "films/a.avro")
