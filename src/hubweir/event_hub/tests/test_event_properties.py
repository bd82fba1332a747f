"""Limits of properties: what the refusal says, and what an open run keeps of a publication that is over them."""

from __future__ import annotations

from array import array

from hubweir.errors import ARGUMENT_ERROR
from hubweir.event_hub.event_properties import properties_too_large
from hubweir.event_hub.open_run import Added, AddStatus, OpenRun
from hubweir.kernels.contract import BATCH_FORMAT
from hubweir.messaging_store.record import headers_of

DONE, PROPERTIES = AddStatus.DONE, AddStatus.PROPERTIES


def data(body: bytes) -> bytes:
    """A data section, which is a message too."""
    return b"\x00\x53\x75\xb0" + len(body).to_bytes(4, "big") + body


def large_properties() -> bytes:
    """A message with one application property of more than 32 KiB."""
    entry = b"\xa3\x01n\xb0" + (33_000).to_bytes(4, "big") + bytes(33_000)
    section = b"\x00\x53\x74\xd1" + (len(entry) + 4).to_bytes(4, "big") + (2).to_bytes(4, "big") + entry
    return section + data(b"body")


def test_an_event_with_too_large_properties_stops_the_run_before_it_and_the_next_one_goes_on() -> None:
    run = OpenRun()
    payload, rows = b"", array("q")
    for number, one in enumerate([data(b"a"), large_properties(), data(b"b")]):
        rows += array("q", [number, len(payload), len(one), 0, 0])
        payload += one
    assert run.add_deliveries(payload, rows, 0, 3) == Added(1, PROPERTIES, 1)
    assert run.add_deliveries(payload, rows, 2, 3) == Added(3, DONE, 1)
    assert run.events == 2


def test_a_chain_that_ends_in_too_large_properties_leaves_nothing_behind() -> None:
    run = OpenRun()
    first = data(b"kept")
    run.add_deliveries(first, array("q", [0, 0, len(first), 0, 0]), 0, 1)
    payload = b"".join(data(one) for one in [*[data(bytes(30_000))] * 5, large_properties()])
    rows = array("q", [1, 0, len(payload), 0, BATCH_FORMAT])
    assert run.add_deliveries(payload, rows, 0, 1) == Added(0, PROPERTIES, 0)
    assert run.events == 1
    assert [header.count for header in headers_of(run.take_run())] == [1]


def test_the_refusal_names_the_hub_both_limits_and_the_way_out() -> None:
    error = properties_too_large("orders")
    assert error.condition is ARGUMENT_ERROR and not error.condition.retriable
    for part in ("'orders'", "32768", "65536", "body"):
        assert part in error.text
