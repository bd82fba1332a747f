"""Open runs over both twins of the kernels: names, sizes, chains, and rows that are no messages."""

from __future__ import annotations

import importlib
from array import array
from random import Random

import pytest

from hubweir.errors import KernelRefusal
from hubweir.event_hub import open_run
from hubweir.event_hub.open_run import Added, AddStatus, OpenRun
from hubweir.kernels import twins
from hubweir.kernels.contract import BATCH_FORMAT, BATCH_WIDTH, BATCHES_OK, R_MESSAGE, R_MESSAGE_LENGTH, RECORD_WIDTH
from hubweir.kernels.stored_batch import (
    BATCH_RECORDS_LIMIT,
    FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER,
    HEADER_SIZE,
    RECORD_HEADER_SIZE,
    BatchHeader,
)
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.record import Producer, headers_of, name_of, producer_of

DONE, MALFORMED, KEY_TOO_LONG = AddStatus.DONE, AddStatus.MALFORMED, AddStatus.KEY_TOO_LONG


@pytest.fixture(params=["pure", "compiled"], autouse=True)
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test of this file over both twins of the kernels."""
    twin = twins
    if request.param == "compiled":
        try:
            twin = importlib.import_module("hubweir.kernels.messages._messages")
        except ImportError:
            pytest.skip("the compiled kernels are not built here")
    monkeypatch.setattr(open_run, "ingest", twin.ingest)
    monkeypatch.setattr(open_run, "find_key", twin.find_key)


def data(body: bytes) -> bytes:
    """A data section."""
    return b"\x00\x53\x75\xb0" + len(body).to_bytes(4, "big") + body


def annotations(key: str) -> bytes:
    """A message-annotations section with a partition key."""
    name, value = b"x-opt-partition-key", key.encode()
    entry = b"\xa3" + bytes([len(name)]) + name + b"\xb1" + len(value).to_bytes(4, "big") + value
    return b"\x00\x53\x72\xd1" + (len(entry) + 4).to_bytes(4, "big") + (2).to_bytes(4, "big") + entry


def message(body: bytes, key: str | None = None) -> bytes:
    return (b"" if key is None else annotations(key)) + data(body)


def envelope(*messages: bytes, key: str | None = None) -> tuple[bytes, int]:
    return (b"" if key is None else annotations(key)) + b"".join(map(data, messages)), BATCH_FORMAT


class Deliveries:
    """Deliveries back to back, with their rows. A bytes is a single message."""

    def __init__(self, *deliveries: bytes | tuple[bytes, int]) -> None:
        self.data, self.rows, self.count = bytearray(b"junk before"), array("q"), len(deliveries)
        for number, delivery in enumerate(deliveries):
            payload, message_format = delivery if isinstance(delivery, tuple) else (delivery, 0)
            self.rows.extend((number, len(self.data), len(payload), 0, message_format))
            self.data += payload

    def add_to(self, run: OpenRun, *, publisher: bytes | None = None, first: int = 0) -> Added:
        return run.add_deliveries(self.data, self.rows, first, self.count, publisher=publisher)


def batches(run: bytearray) -> list[BatchHeader]:
    """The batches of a run, after both a reader's check and the owner's."""
    table = array("q", bytes(8 * BATCH_WIDTH * 4096))
    rows, position, status = twins.scan_batches(run, 0, len(run), 0, table)
    assert (position, status) == (len(run), BATCHES_OK)
    headers = list(headers_of(run))
    assert len(headers) == rows
    if run:
        complete_run(bytearray(run), LogEnd(), nonce=1, enqueued_time_ms=1, durable_upto=0, writer_epoch=1)
    return headers


def events(run: bytearray) -> list[tuple[bytes, bytes]]:
    """(name, message) of every event in the run."""
    found = []
    for header in headers_of(run):
        table = array("q", bytes(8 * RECORD_WIDTH * header.count))
        assert twins.scan_records(run, header.position, table) == header.count
        for at in range(0, len(table), RECORD_WIDTH):
            start = table[at + R_MESSAGE]
            found.append((name_of(run, header), bytes(run[start : start + table[at + R_MESSAGE_LENGTH]])))
    return found


def test_single_messages_and_batches_without_a_key_share_one_batch_in_order_of_arrival() -> None:
    run = OpenRun()
    one, two, three, four = (message(bytes([number]) * 10) for number in range(4))
    assert Deliveries(one, envelope(two, three)).add_to(run) == Added(2, DONE, 3)
    assert Deliveries(four).add_to(run) == Added(1, DONE, 1)
    assert run.events == 4
    size = run.size_bytes
    taken = run.take_run()
    assert len(taken) == size == HEADER_SIZE + 4 * (RECORD_HEADER_SIZE + len(one))
    assert [header.count for header in batches(taken)] == [4]
    assert events(taken) == [(b"", one), (b"", two), (b"", three), (b"", four)]


def test_a_run_that_was_taken_leaves_an_empty_one() -> None:
    run = OpenRun()
    assert run.take_run() == b""
    Deliveries(message(b"a")).add_to(run)
    first = run.take_run()
    assert (run.size_bytes, run.events, run.take_run()) == (0, 0, b"")
    Deliveries(message(b"b")).add_to(run)
    assert events(first) == [(b"", message(b"a"))]
    assert events(run.take_run()) == [(b"", message(b"b"))]


def test_a_change_of_the_envelope_s_key_seals_a_batch_and_the_same_key_goes_on() -> None:
    run = OpenRun()
    deliveries = Deliveries(
        envelope(message(b"1")), envelope(message(b"2"), message(b"3"), key="a"), envelope(message(b"4"), key="a"),
        envelope(message(b"5"), key="b"), message(b"6"), envelope(message(b"7"), key="b"),
    )  # fmt: skip
    assert deliveries.add_to(run) == Added(6, DONE, 7)
    taken = run.take_run()
    assert [name for name, _ in events(taken)] == [b"", b"a", b"a", b"a", b"b", b"", b"b"]
    assert [header.flags for header in batches(taken)] == [0, FLAG_NAME_IS_KEY, FLAG_NAME_IS_KEY, 0, FLAG_NAME_IS_KEY]
    assert [found for _, found in events(taken)] == [message(str(number).encode()) for number in range(1, 8)]


def test_the_key_of_a_single_message_stays_in_its_own_annotations() -> None:
    run = OpenRun()
    keyed = message(b"k", key="mine")
    assert Deliveries(message(b"1"), keyed, message(b"2")).add_to(run) == Added(3, DONE, 3)
    taken = run.take_run()
    assert len(batches(taken)) == 1
    assert events(taken)[1] == (b"", keyed)


def test_a_publisher_names_every_batch_of_its_link_whatever_the_envelopes_say() -> None:
    run = OpenRun()
    Deliveries(message(b"0")).add_to(run)
    Deliveries(message(b"1"), envelope(message(b"2"), key="other")).add_to(run, publisher=b"p1")
    Deliveries(message(b"3")).add_to(run, publisher=b"p1")
    Deliveries(message(b"4")).add_to(run, publisher=b"p2")
    Deliveries(envelope(message(b"5"), key="p2")).add_to(run)
    taken = run.take_run()
    assert [name for name, _ in events(taken)] == [b"", b"p1", b"p1", b"p1", b"p2", b"p2"]
    flags = [header.flags for header in batches(taken)]
    assert flags == [0, FLAG_NAME_IS_PUBLISHER, FLAG_NAME_IS_PUBLISHER, FLAG_NAME_IS_KEY]


def test_batches_are_sealed_at_64_kib_and_deliveries_that_fit_are_not_split() -> None:
    run = OpenRun()
    deliveries = Deliveries(*(message(bytes(10_000)) for _ in range(20)))
    assert deliveries.add_to(run) == Added(20, DONE, 20)
    headers = batches(run.take_run())
    assert [header.count for header in headers] == [6, 6, 6, 2]
    assert all(header.record_bytes <= BATCH_RECORDS_LIMIT and not header.continues for header in headers)


@pytest.mark.parametrize("size", [BATCH_RECORDS_LIMIT - 60, BATCH_RECORDS_LIMIT, 1_000_000])
def test_one_large_event_has_a_batch_of_its_own(size: int) -> None:
    run = OpenRun()
    small, large = message(b"small"), message(bytes(size))
    assert Deliveries(small, large, small).add_to(run) == Added(3, DONE, 3)
    taken = run.take_run()
    assert [header.count for header in batches(taken)] == [1, 1, 1]
    assert not any(header.continues for header in batches(taken))
    assert [found for _, found in events(taken)] == [small, large, small]


@pytest.mark.parametrize("key", [None, "k"])
def test_a_delivery_larger_than_a_batch_becomes_a_chain(key: str | None) -> None:
    run = OpenRun()
    messages = [message(bytes([number % 256]) * 900) for number in range(300)]
    before = [message(b"before")] * 3
    deliveries = Deliveries(*before, envelope(*messages, key=key), message(b"behind"))
    assert deliveries.add_to(run) == Added(5, DONE, 304)
    taken = run.take_run()
    headers = batches(taken)
    name = (key or "").encode()
    assert events(taken) == [*((b"", m) for m in before), *((name, m) for m in messages), (b"", message(b"behind"))]
    assert all(header.record_bytes <= BATCH_RECORDS_LIMIT for header in headers)
    last = max(at for at, header in enumerate(headers) if name_of(taken, header) == name and header.count > 1)
    chain = [header.continues for header in headers]
    assert chain.count(True) >= 4
    assert not chain[last] and all(chain[last - 4 : last])


def test_a_malformed_row_leaves_nothing_of_itself_and_the_rows_around_it_stay() -> None:
    run = OpenRun()
    good = [message(b"a"), message(b"b")]
    for bad in (
        b"\x00", b"junk", good[0][:-1], data(b"x")[:4] + b"\xff\xff\xff\xff", (data(b"not a message"), BATCH_FORMAT),
        (good[0], 7), envelope(good[0], b"junk"), (data(good[0])[:-1], BATCH_FORMAT),
        (b"\x00\x53\x77\x40", BATCH_FORMAT),
    ):  # fmt: skip
        deliveries = Deliveries(good[0], bad, good[1])
        assert deliveries.add_to(run) == Added(1, MALFORMED, 1), bad
        assert deliveries.add_to(run, first=2) == Added(3, DONE, 1)
        taken = run.take_run()
        batches(taken)
        assert events(taken) == [(b"", good[0]), (b"", good[1])]


def test_a_malformed_event_late_in_a_chain_takes_the_whole_delivery_back() -> None:
    run = OpenRun()
    fine = [message(bytes([number % 256]) * 900) for number in range(300)]
    first, last = message(b"first"), message(b"last")
    for place in (0, 1, 71, 72, 150, 299):
        broken = [*fine[:place], b"\x00\x53\x75", *fine[place + 1 :]]
        deliveries = Deliveries(first, envelope(*broken, key="k"), last)
        assert deliveries.add_to(run) == Added(1, MALFORMED, 1)
        assert run.events == 1
        assert deliveries.add_to(run, first=2) == Added(3, DONE, 1)
        taken = run.take_run()
        assert not any(header.continues for header in batches(taken))
        assert events(taken) == [(b"", first), (b"", last)]


@pytest.mark.parametrize("others", [0, 1, 30])
def test_a_chain_that_began_behind_other_events_is_taken_back_to_them(others: int) -> None:
    run = OpenRun()
    before = [message(bytes(1_000))] * others
    # Many tiny events: the delivery is smaller than the room left, its records are not.
    tiny = [message(b"t")] * 2_000
    assert Deliveries(*before).add_to(run) == Added(others, DONE, others)
    assert Deliveries(envelope(*tiny, b"junk"), message(b"next")).add_to(run) == Added(0, MALFORMED, 0)
    assert Deliveries(message(b"next")).add_to(run) == Added(1, DONE, 1)
    taken = run.take_run()
    batches(taken)
    assert events(taken) == [(b"", found) for found in (*before, message(b"next"))]


def test_only_malformed_rows_leave_an_empty_run_and_what_follows_has_the_name_of_its_own_link() -> None:
    run = OpenRun()
    assert Deliveries(b"junk").add_to(run) == Added(0, MALFORMED, 0)
    assert Deliveries(b"junk").add_to(run, publisher=b"p") == Added(0, MALFORMED, 0)
    assert run.take_run() == b""
    for other, publisher in ((None, b"p"), (b"q", None)):
        assert Deliveries(b"junk").add_to(run, publisher=other) == Added(0, MALFORMED, 0)
        assert Deliveries(message(b"1")).add_to(run, publisher=publisher) == Added(1, DONE, 1)
    assert [name for name, _ in events(run.take_run())] == [b"p", b""]


def test_a_key_over_128_characters_is_reported_and_leaves_nothing() -> None:
    run = OpenRun()
    deliveries = Deliveries(
        message(b"1"), envelope(message(b"2"), key="k" * 129), envelope(message(b"3"), key="\u6f22" * 128)
    )
    assert deliveries.add_to(run) == Added(1, KEY_TOO_LONG, 1)
    assert deliveries.add_to(run, first=2) == Added(3, DONE, 1)
    assert [name for name, _ in events(run.take_run())] == [b"", "\u6f22".encode() * 128]


def test_an_envelope_without_events_is_taken_and_stores_nothing() -> None:
    run = OpenRun()
    assert Deliveries((b"", BATCH_FORMAT), message(b"a")).add_to(run) == Added(2, DONE, 1)
    assert events(run.take_run()) == [(b"", message(b"a"))]
    assert Deliveries((b"", BATCH_FORMAT)).add_to(run) == Added(1, DONE, 0)
    assert run.take_run() == b""


def test_kernels_that_disagree_about_a_key_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_run, "find_key", lambda *_: (0, 0, 0))
    with pytest.raises(KernelRefusal):
        Deliveries(envelope(message(b"1"), key="a")).add_to(OpenRun())


@pytest.mark.parametrize("seed", range(12))
def test_random_deliveries_come_out_as_they_went_in(seed: int) -> None:
    """Random singles, envelopes, keys, publishers, sizes and broken rows; compared with what was accepted."""
    random, run, expected = Random(seed), OpenRun(), list[tuple[bytes, bytes]]()
    for _ in range(12):
        publisher = random.choice([None, None, b"p", b"q"])
        deliveries: list[bytes | tuple[bytes, int]] = []
        wanted: list[list[tuple[bytes, bytes]] | None] = []
        for _ in range(random.randrange(1, 8)):
            key = random.choice([None, "a", "b"])
            texts = [message(random.randbytes(random.choice([1, 50, 3_000]))) for _ in range(random.randrange(1, 40))]
            name = publisher or (key or "").encode()
            if random.random() < 0.15:
                deliveries.append(envelope(*texts, b"broken", key=key))
                wanted.append(None)
            elif random.random() < 0.4:
                deliveries.append(message(texts[0], key))
                wanted.append([(publisher or b"", message(texts[0], key))])
            else:
                deliveries.append(envelope(*texts, key=key))
                wanted.append([(name, text) for text in texts])
        table, row = Deliveries(*deliveries), 0
        while row < table.count:
            added = table.add_to(run, publisher=publisher, first=row)
            for accepted in wanted[row : added.row]:
                assert accepted is not None
                expected += accepted
            if added.status is MALFORMED:
                assert wanted[added.row] is None
                row = added.row + 1
            else:
                assert (added.status, added.row) == (DONE, table.count)
                row = added.row
    assert run.events == len(expected)
    taken = run.take_run()
    headers = batches(taken)
    assert sum(header.count for header in headers) == len(expected)
    # A single message lies under its own key's name when such a batch was open: its key is the same either way.
    assert [found for _, found in events(taken)] == [found for _, found in expected]
    for (name, found), (wanted_name, _) in zip(events(taken), expected, strict=True):
        assert name == wanted_name or (not wanted_name and found.startswith(annotations(name.decode())))


def test_a_numbered_delivery_has_batches_of_its_own_and_each_says_its_first_number() -> None:
    run = OpenRun()
    plain, at = message(b"plain"), 0
    big, message_format = envelope(*[message(bytes(30_000), "k")] * 5, key="k")
    stream = plain + big + plain
    rows = array("q")
    for size, kind in ((len(plain), 0), (len(big), message_format), (len(plain), 0)):
        rows.extend([len(rows) // 5, at, size, 0, kind])
        at += size
    assert run.add_deliveries(stream, rows, 0, 1) == Added(1, DONE, 1)
    assert run.add_deliveries(stream, rows, 1, 2, producer=Producer(7, 2, 10)) == Added(2, DONE, 5)
    assert run.add_deliveries(stream, rows, 2, 3) == Added(3, DONE, 1)
    taken = run.take_run()
    found = [(header.count, name_of(taken, header), producer_of(taken, header)) for header in headers_of(taken)]
    assert found == [
        (1, b"", None), (2, b"k", Producer(7, 2, 10)), (2, b"k", Producer(7, 2, 12)), (1, b"k", Producer(7, 2, 14)),
        (1, b"", None),
    ]  # fmt: skip
    assert [header.continues for header in headers_of(taken)] == [False, True, True, False, False]


def test_a_numbered_delivery_that_is_malformed_leaves_nothing_and_two_cannot_share_a_number() -> None:
    run = OpenRun()
    noise = b"no message"
    rows = array("q", [0, 0, len(noise), 0, 0])
    assert run.add_deliveries(noise, rows, 0, 1, producer=Producer(7, 0, 1)).status is MALFORMED
    assert run.take_run() == b""
    with pytest.raises(KernelRefusal):
        run.add_deliveries(noise, array("q", [0, 0, 1, 0, 0] * 2), 0, 2, producer=Producer(7, 0, 1))
