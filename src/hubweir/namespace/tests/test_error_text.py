"""Texts that client libraries match letter for letter."""

import re

from hubweir.namespace.error_text import (
    Reference,
    entity_not_found,
    entity_tracker,
    entity_uri,
    invalid_partition,
    message_too_large,
    printable,
    timestamp,
    unauthorized,
    with_reference,
)

REFERENCE = Reference("0123456789abcdef0123456789abcdef", entity_tracker("ns", "eventhub", "Hub"), 1_700_000_000_999)


def test_a_reference_stands_behind_the_text_where_the_python_client_splits_it_off() -> None:
    text = with_reference(unauthorized("Send", "sb://ns/hub"), REFERENCE)
    assert text == (
        "Unauthorized access. 'Send' claim(s) are required to perform this operation. Resource: 'sb://ns/hub'., "
        "TrackingId:01234567-89ab-cdef-0123-456789abcdef_G0, SystemTracker:ns:eventhub:hub, "
        "Timestamp:2023-11-14T22:13:20"
    )


def test_a_reference_is_given_once_only() -> None:
    text = with_reference("gone", REFERENCE)
    assert with_reference(text, REFERENCE) == text


def test_a_missing_entity_reads_as_every_library_expects() -> None:
    text = entity_not_found(entity_uri("NS.local", "Hub/ConsumerGroups/G"))
    assert re.search("the messaging entity .* could not be found", text, re.IGNORECASE)
    assert text.startswith("The messaging entity 'sb://ns.local/hub/consumergroups/g' could not be found. ")


def test_an_invalid_partition_names_what_exists() -> None:
    text = invalid_partition("XYZ\n", hub="Hub", partition_count=4)
    assert text.startswith("The specified partition is invalid for an EventHub partition sender or receiver")
    assert "'XYZ?'" in text and "partitions 0 to 3" in text


def test_an_oversize_message_names_id_size_and_limit() -> None:
    assert message_too_large(7, 2_000_000, 1_048_576) == (
        "The received message (delivery-id:7, size:2000000 bytes) exceeds the limit (1048576 bytes) currently "
        "allowed on the link."
    )


def test_times_outside_the_calendar_do_not_fail() -> None:
    assert timestamp(-(10**20)) == "0001-01-01T00:00:00"
    assert timestamp(10**20) == "9999-12-31T23:59:59"


def test_a_tracker_names_partition_and_group() -> None:
    assert entity_tracker("ns", "eventhub", "Hub") == "ns:eventhub:hub"
    assert entity_tracker("ns", "Queue", "Orders") == "ns:Queue:orders"


def test_a_peer_s_text_is_made_printable_and_short() -> None:
    assert printable("a\r\n\x1b[31m\u2028b" + "x" * 999, 12) == "a???[31m?bxx"
