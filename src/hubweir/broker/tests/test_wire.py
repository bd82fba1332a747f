"""Everything that crosses the seam has a form in bytes and comes back the same."""

import subprocess
import sys
import typing
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubweir.broker import wire
from hubweir.broker.commands.broker_process import BrokerFault, ConnectionTold, ProcessTold, StandingAlarm
from hubweir.broker.commands.command import DECLARED, Answer, Command, Message, Owner, Push
from hubweir.broker.commands.forwarding import TransferPlace
from hubweir.broker.commands.fragment import EnqueueMessages, SettleMessages
from hubweir.broker.commands.partition import AppendEvents, CreatePartition, PartitionInfo
from hubweir.broker.commands.process import AskCounters, CloseOwner, CountersTaken, Done, Refusal
from hubweir.broker.commands.reader import CloseReader, EventsRead, OpenReader, ReaderClosed
from hubweir.broker.commands.status import AlarmTold, LogTold, ReaderTold
from hubweir.broker.commands.testcontrol import FaultRates, OrderedFaults, StandingOrders
from hubweir.broker.commands.topic import TopicSubscription
from hubweir.broker.wire import (
    FRAME_LIMIT_BYTES,
    HEAD_START,
    decode_answer,
    decode_command,
    encode_frame,
)
from hubweir.drivers.broker_driver import LENGTHS
from hubweir.errors import CONDITIONS, NOT_FOUND, Condition, DecodeError, EncodeError
from hubweir.event_hub.event_position import EventPosition, PositionKind
from hubweir.limits import MIB
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.namespace.messaging_tier import MESSAGING_TIERS
from hubweir.queue.forwarding import TransferEnd
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.transaction import Reserved, TransactedSettlement, Undelivered
from hubweir.queue.transaction_decisions import Fate
from hubweir.testing.broker_frames import parts_of, sent
from hubweir.throughput_unit.rate_limit import Amount
from hubweir.throughput_unit.unit_lender import LeaseAsked
from hubweir.throughput_unit.usage import MovedCounts

RUN_LIMIT_BYTES = 4 * MIB  # LinkSettings of the gateway, which a test of the broker does not import
LONGS = st.integers(-(2**63), 2**63 - 1)
SUBSCRIPTIONS = st.builds(
    TopicSubscription, st.text(), st.text(), st.just(FragmentSettings(max_delivery_count=3)), st.booleans(), st.binary()
)
SETTLEMENTS = st.builds(
    TransactedSettlement,
    st.text(),
    st.binary(),
    st.sampled_from(SettleOutcome),
    st.none() | st.builds(SettleDetails, st.none() | st.text(), st.none() | st.text(), st.binary()),
)
RATES = st.builds(
    FaultRates, drop=st.floats(0, 1), delay_ms=st.integers(0, 1_000), seed=st.none() | st.integers(0, 2**63 - 1)
)
ORDERED = st.builds(OrderedFaults, LONGS, RATES)
TEXTS = st.lists(st.text(max_size=10), max_size=5).map(tuple)
INDEXES = st.lists(LONGS, max_size=3).map(tuple)
AMOUNTS = st.builds(Amount, LONGS, LONGS)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: LONGS,
    str: st.text(max_size=40),
    bool: st.booleans(),
    bytes: st.binary(max_size=100),
    bytes | None: st.none() | st.binary(max_size=100),
    SubQueue: st.sampled_from(SubQueue),
    TransferEnd: st.sampled_from(TransferEnd),
    BrokerFault: st.sampled_from(BrokerFault),
    tuple[ProcessTold, ...]: st.lists(
        st.builds(ProcessTold, LONGS, LONGS, INDEXES, st.text(), LONGS, LONGS, INDEXES), max_size=3
    ).map(tuple),
    tuple[StandingAlarm, ...]: st.lists(st.builds(StandingAlarm, st.text(), st.text()), max_size=3).map(tuple),
    tuple[AlarmTold, ...]: st.lists(st.builds(AlarmTold, st.text(), st.text(), st.text(), LONGS), max_size=3).map(
        tuple
    ),
    tuple[LogTold, ...]: st.lists(st.builds(LogTold, st.text(), LONGS, LONGS, LONGS, st.text()), max_size=3).map(tuple),
    tuple[ReaderTold, ...]: st.lists(
        st.builds(ReaderTold, *[st.text()] * 3, *[LONGS] * 4, st.text(), st.text()), max_size=3
    ).map(tuple),
    tuple[TransferPlace, ...]: st.lists(st.builds(TransferPlace, st.text(), st.sampled_from(SubQueue)), max_size=3).map(
        tuple
    ),
    ReceiveMode: st.sampled_from(ReceiveMode),
    SettleOutcome: st.sampled_from(SettleOutcome),
    SettleDetails | None: st.none()
    | st.builds(SettleDetails, st.none() | st.text(), st.none() | st.text(), st.binary()),
    TopicSubscription: SUBSCRIPTIONS,
    Fate: st.sampled_from(Fate),
    tuple[TransactedSettlement, ...]: st.lists(SETTLEMENTS, max_size=3).map(tuple),
    tuple[Reserved, ...]: st.lists(st.builds(Reserved, LONGS, LONGS), max_size=3).map(tuple),
    tuple[Undelivered, ...]: st.lists(st.builds(Undelivered, LONGS, LONGS, st.text(), st.text()), max_size=3).map(
        tuple
    ),
    tuple[TopicSubscription, ...]: st.lists(SUBSCRIPTIONS, max_size=3).map(tuple),
    FragmentSettings: st.builds(FragmentSettings, is_express=st.booleans(), default_ttl_ms=st.none() | LONGS),
    tuple[int, ...]: INDEXES,
    tuple[tuple[int, ...], ...]: st.lists(st.lists(LONGS, max_size=3).map(tuple), max_size=3).map(tuple),
    Amount: AMOUNTS,
    LeaseAsked: st.builds(LeaseAsked, *[AMOUNTS] * 4),
    MovedCounts: st.builds(MovedCounts, *[LONGS] * 7),
    int | None: st.none() | LONGS,
    str | None: st.none() | st.text(max_size=40),
    Durability: st.sampled_from(Durability),
    EventPosition: st.builds(EventPosition, st.sampled_from(PositionKind), LONGS, st.booleans()),
    Owner: st.builds(Owner, LONGS, LONGS),
    Condition: st.sampled_from(CONDITIONS),
    CaptureDescription | None: st.none()
    | st.builds(
        CaptureDescription, interval_s=LONGS, size_limit_bytes=LONGS, destination=st.sampled_from(CaptureDestination)
    ),
    tuple[str, ...]: TEXTS,
    tuple[tuple[str, str], ...] | None: st.none() | st.lists(st.tuples(st.text(), st.text()), max_size=3).map(tuple),
    tuple[ConnectionTold, ...]: st.lists(
        st.builds(ConnectionTold, LONGS, st.text(), st.booleans(), LONGS, st.text(), st.text(), TEXTS, TEXTS, LONGS),
        max_size=3,
    ).map(tuple),
    FaultRates | None: st.none() | RATES,
    OrderedFaults | None: st.none() | ORDERED,
    StandingOrders: st.builds(
        StandingOrders, LONGS, LONGS, LONGS, st.dictionaries(st.text(max_size=10), ORDERED, max_size=3)
    ),
    dict[str, dict[str, int]]: st.dictionaries(
        st.text(max_size=10), st.dictionaries(st.text(max_size=10), LONGS, max_size=3), max_size=3
    ),
    dict[str, int]: st.dictionaries(st.text(max_size=10), LONGS, max_size=5),
    bytearray: st.binary(max_size=300).map(bytearray),
    bytes | memoryview: st.binary(max_size=300),
}


@cache
def any_of(made: type[Message]) -> st.SearchStrategy[Any]:
    """Made once for all examples of a class: to resolve its annotations takes longer than to draw one."""
    hints = typing.get_type_hints(made)
    return st.builds(made, **{name: VALUES[hints[name]] for name in made.__struct_fields__})


def there_and_back(request_id: int, message: Any) -> tuple[int, Any]:
    head, body = sent(request_id, message)
    return decode_command(head, body) if isinstance(message, Command) else decode_answer(head, body)


@pytest.mark.parametrize("made", DECLARED.values(), ids=lambda made: made.__name__)
@given(data=st.data())
def test_every_message_comes_back_as_it_went(made: type, data: st.DataObject) -> None:
    message = data.draw(any_of(made))
    request_id = 0 if isinstance(message, Push) else data.draw(st.integers(1, 2**64 - 1))
    assert there_and_back(request_id, message) == (request_id, message)


def test_the_form_of_a_class_is_made_once_however_many_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    make, made = wire._made_form, list[type[Message]]()

    def noted(each: type[Message]) -> Any:
        made.append(each)
        return make(each)

    monkeypatch.setattr(wire, "_made_form", noted)
    wire.form_of.cache_clear()
    for _ in range(2):
        forms = [form.made for form in map(wire.form_of, range(256)) if form is not None]
    assert made == forms and set(forms) == set(DECLARED.values())


def test_no_form_is_made_before_a_message_travels() -> None:
    """All of them take a fortieth of a start, and a process needs few."""
    program = "from hubweir.broker import wire; print(wire.form_of.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.strip() == "0"


def test_a_condition_behind_a_run_has_its_place_too() -> None:
    class Damaged(Answer, frozen=True):
        number: typing.ClassVar[int] = 0
        run: bytes | memoryview
        condition: Condition
        text: str

    form = wire._made_form(Damaged)
    assert (form.run_at, form.condition_at) == (0, 0), "what is left of the fields begins with it"


def test_a_condition_travels_as_its_symbol_and_one_that_is_none_is_refused() -> None:
    _, refusal = there_and_back(1, Refusal(NOT_FOUND, "gone"))
    assert refusal.condition is NOT_FOUND
    head, body = sent(1, Refusal(NOT_FOUND, "gone"))
    with pytest.raises(DecodeError, match="amqp:not-fount"):
        decode_answer(memoryview(bytes(head).replace(b"amqp:not-found", b"amqp:not-fount")), body)
    for broken in (7, None, [], {}):
        with pytest.raises(DecodeError, match="Expected `str`"):
            decode_answer(frame_of(Refusal.number, broken, "gone", True), bytearray())
    assert decode_answer(frame_of(Refusal.number, "amqp:not-found", "gone", True), bytearray())[1] == refusal


def test_types_come_back_too_and_runs_are_owned_where_they_are_written_to() -> None:
    _, created = there_and_back(1, CreatePartition("log", "hub", "0", Durability.RELAXED, 5))
    assert type(created.durability) is Durability
    head, body = sent(1, AppendEvents("log", bytearray(b"run")))
    _, append = decode_command(head, body)
    assert type(append) is AppendEvents and append.run is body == bytearray(b"run")


def test_a_run_is_sent_from_where_it_lies_and_read_from_where_it_arrived() -> None:
    run = memoryview(b"x" * 1000)
    buffers = encode_frame(7, EventsRead(1, 2, 3, run))
    assert buffers[1] is run
    head, body = parts_of(buffers)
    _, answer = decode_answer(head, body)
    assert isinstance(answer, EventsRead) and isinstance(answer.run, memoryview)
    assert answer.run.obj is body


def test_nothing_of_a_message_lies_in_its_head_which_is_read_over() -> None:
    message = SettleMessages("log", b"tokens", SettleOutcome.COMPLETE)
    head, body = sent(1, message)
    received = memoryview(bytearray(head))
    _, decoded = decode_command(received, body)
    received[:] = bytes(len(received))
    assert decoded == message


@pytest.mark.parametrize(
    "message",
    [
        OpenReader("log", Owner(1, 2), "$Default", EventPosition(PositionKind.OFFSET, 5, True), None, "me"),
        AppendEvents("log", bytearray(b"run")),
        CountersTaken({"a": 1}),
        PartitionInfo("log", -1, -1, -1, None, True, 0),
    ],
    ids=lambda message: type(message).__name__,
)
def test_every_truncation_and_every_byte_more_is_refused(message: Any) -> None:
    decode = decode_command if isinstance(message, Command) else decode_answer
    head, body = sent(5, message)
    for end in range(len(head)):
        with pytest.raises(DecodeError):
            decode(head[:end], body)
    with pytest.raises(DecodeError):
        decode(memoryview(bytes(head) + b"\x00"), body)


@given(data=st.data())
def test_a_flipped_byte_gives_another_message_or_a_decode_error(data: st.DataObject) -> None:
    head, body = sent(5, OpenReader("log", Owner(1, 2), "g", EventPosition(PositionKind.LATEST), 4, None))
    whole = bytearray(head)
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        _, message = decode_command(memoryview(whole), body)
    except DecodeError:
        return
    assert isinstance(message, Command)


def frame_of(number: int, *values: Any, request_id: int = 5, more: bytes = b"") -> memoryview:
    return memoryview(HEAD_START.pack(request_id, number) + msgspec.msgpack.encode(values) + more)


@pytest.mark.parametrize(
    ("head", "body", "text"),
    [
        (memoryview(HEAD_START.pack(5, 11) + msgspec.msgpack.encode({})), b"", "Expected `array`"),
        (frame_of(99), b"", "number 99 does not belong here"),
        (frame_of(64), b"", "number 64 does not belong here"),  # an answer, where commands are expected
        (frame_of(6, "a"), b"", "length 2"),  # CloseReader without its last field
        (frame_of(6, "a", None), b"", "Expected `int`"),
        (frame_of(6, "a", True), b"", "Expected `int`"),
        (frame_of(6, b"a", 1), b"", "Expected `str`"),
        (frame_of(6, "a", 1, 2), b"", "length 2"),
        (frame_of(6, "a", 1, more=b"\x00"), b"", "trailing"),
        (frame_of(11), b"more", "has a body, and no run"),
        (frame_of(11, request_id=0), b"", "request id 0"),  # a command without a request id
    ],
)
def test_what_is_not_exactly_a_message_is_refused(head: memoryview, body: bytes, text: str) -> None:
    with pytest.raises(DecodeError, match=text):
        decode_command(head, bytearray(body))


DEEP = b"\x91" * 100_000 + b"\xc0"  # arrays in arrays


@pytest.mark.parametrize("value", [b"\xa2\xc3\x28", b"\x82\xa1p" + DEEP])
def test_text_that_is_none_and_values_that_never_end_are_refused(value: bytes) -> None:
    """The first field of a CloseReader, and the owner of a CloseOwner, with a name that no owner has."""
    for number, count in ((6, 2), (CloseOwner.number, 1)):
        with pytest.raises(DecodeError):
            decode_command(
                memoryview(HEAD_START.pack(5, number) + bytes([0x90 + count]) + value + b"\x01"), bytearray()
            )


@pytest.mark.parametrize("value", ["eventually", 7])
def test_a_value_that_an_enumeration_does_not_have_is_refused(value: Any) -> None:
    """Taken for nothing, a hub would have no durability at all."""
    fields = ["log", "hub", "0", Durability.RELAXED.value, 5, "", None]
    assert decode_command(frame_of(1, *fields), bytearray())[1] == CreatePartition(
        "log", "hub", "0", Durability.RELAXED, 5
    )
    fields[3] = value
    with pytest.raises(DecodeError):
        decode_command(frame_of(1, *fields), bytearray())


@pytest.mark.parametrize("broken", [2**64, -(2**63) - 1, "\ud800"])
def test_a_value_that_has_no_form_is_not_sent(broken: Any) -> None:
    with pytest.raises(EncodeError, match="CloseReader cannot be sent"):
        encode_frame(1, CloseReader("a", broken))


def test_the_control_frames_of_the_refusals_are_taken() -> None:
    """The same heads without their fault decode, so it is the fault that is refused above."""
    assert decode_command(frame_of(11), bytearray()) == (5, AskCounters())
    assert decode_command(frame_of(6, "a", 1), bytearray()) == (5, CloseReader("a", 1))
    assert decode_answer(frame_of(64), bytearray()) == (5, Done())


def test_pushes_and_answers_are_told_apart_by_the_request_id() -> None:
    assert there_and_back(0, ReaderClosed(Owner(1, 2), "a", 1, NOT_FOUND, "gone"))[0] == 0
    with pytest.raises(DecodeError):
        there_and_back(1, ReaderClosed(Owner(1, 2), "a", 1, NOT_FOUND, "gone"))
    with pytest.raises(DecodeError):
        there_and_back(0, Refusal(NOT_FOUND, "gone"))


def test_a_frame_over_the_limit_is_not_made() -> None:
    head, _ = sent(1, AppendEvents("log", bytearray()))
    room = FRAME_LIMIT_BYTES - len(head)
    assert sum(map(len, encode_frame(1, AppendEvents("log", bytearray(room))))) == FRAME_LIMIT_BYTES + LENGTHS.size
    with pytest.raises(EncodeError, match="over the limit"):
        encode_frame(1, AppendEvents("log", bytearray(room + 1)))


def test_a_frame_holds_the_largest_message_that_any_entity_takes_behind_a_run_that_is_almost_full() -> None:
    largest = max(tier.message_kilobytes_limit or tier.message_kilobytes for tier in MESSAGING_TIERS.values()) * 1_024
    run = bytearray(RUN_LIMIT_BYTES + largest + MIB)  # a MiB of heads
    command = EnqueueMessages("log", run, 1, largest)
    assert sum(map(len, encode_frame(1, command))) > len(run)
