"""Messages go from one fragment to another, once, whatever is repeated, refused or lost on the way.

Long because both ends are asked together: nothing of one of them means anything alone.
"""

from __future__ import annotations

from array import array

import pytest

from hubweir.amqp.messaging.message import decode_message
from hubweir.errors import RESOURCE_LIMIT, SERVER_BUSY, CorruptStore, ServiceError
from hubweir.kernels import encode_message
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_ENQUEUE_NUMBER
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment import OpenTransfer, ReceivedMessages, TransferEnd
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import QueueBench, bodies, message
from hubweir.queue.tests.forward_bench import ForwardBench, forward_pair

TRANSFER_DEAD = SubQueue.TRANSFER_DEAD_LETTERS


@pytest.fixture
def pair() -> ForwardBench:
    return forward_pair()


def numbers_of_origin(bench: QueueBench, sub_queue: SubQueue = SubQueue.MAIN) -> list[int]:
    """What the messages of a sub-queue say of their number before they were forwarded."""
    return list(peeked(bench, sub_queue).rows[Q_ENQUEUE_NUMBER::MESSAGE_WIDTH])


def peeked(bench: QueueBench, sub_queue: SubQueue = SubQueue.MAIN) -> ReceivedMessages:
    answer = bench.answer(
        lambda done: bench.fragment.peek(sub_queue, 1, max_count=5_000, max_bytes=1 << 30, on_done=done), 200
    )
    assert isinstance(answer, ReceivedMessages)
    return answer


def test_messages_go_in_their_order_and_say_which_number_they_had(pair: ForwardBench) -> None:
    pair.destination.send("here before")
    pair.source.send("a", "b")
    pair.source.send("c")
    pair.forward()
    assert bodies(pair.destination.peek()) == ["here before", "a", "b", "c"]
    assert numbers_of_origin(pair.destination) == [-1, 1, 2, 3]
    assert pair.source.peek() == []
    assert pair.source.fragment.counts().size_bytes == 0


def test_what_was_forwarded_twice_says_the_number_that_it_had_first(pair: ForwardBench) -> None:
    pair.source.send("gone")
    pair.forward()
    pair.source.send("a")
    pair.forward()
    further = ForwardBench(pair.destination, QueueBench())
    further.forward()
    assert numbers_of_origin(further.destination) == [1, 2]


def test_a_transfer_waits_for_a_message(pair: ForwardBench) -> None:
    answers: list[OpenTransfer] = []
    pair.source.fragment.take_transfer(SubQueue.MAIN, b"there", answers.append)  # type: ignore[arg-type]
    pair.run_for(500)
    assert answers == []
    pair.source.send("a", wait_ms=200)
    assert [len(each.firsts) for each in answers] == [1]


def test_a_transfer_that_is_offered_again_is_not_stored_again(pair: ForwardBench) -> None:
    pair.source.send("a", "b")
    transfer = pair.take()
    assert pair.store(transfer) is True
    again = pair.take()
    assert again.number == transfer.number and again.attempt > transfer.attempt
    assert pair.store(again) is True
    assert bodies(pair.destination.peek()) == ["a", "b"]


def test_the_same_messages_are_offered_behind_a_crash_of_the_source(pair: ForwardBench) -> None:
    pair.source.send("a", "b")
    transfer = pair.take()
    assert pair.store(transfer) is True
    pair.source.restart()
    pair.source.send("c")
    assert pair.source.fragment.open_transfers == [SubQueue.MAIN]
    again = pair.take(b"elsewhere")
    assert (again.number, again.destination, len(again.firsts)) == (transfer.number, b"there", 2)
    assert pair.store(again) is True
    pair.end(again)
    assert bodies(pair.source.peek()) == ["c"]
    assert bodies(pair.destination.peek()) == ["a", "b"]


def test_a_crash_of_the_destination_forgets_nothing_that_it_stored(pair: ForwardBench) -> None:
    pair.source.send("a")
    transfer = pair.take()
    assert pair.store(transfer) is True
    pair.destination.restart()
    assert pair.store(transfer) is True
    assert bodies(pair.destination.peek()) == ["a"]
    assert pair.store(transfer, asks=True) is True


@pytest.mark.parametrize("side", ["source", "destination"])
def test_transfers_come_back_from_a_snapshot(pair: ForwardBench, side: str) -> None:
    pair.source.send("a", "b")
    transfer = pair.take()
    assert pair.store(transfer) is True
    bench = getattr(pair, side)
    bench.fragment.upkeep.snapshot_records = 1
    bench.fragment.maintain(bench.times())
    bench.run_for(1_000)
    assert bench.fragment.upkeep.snapshot_index > 0
    bench.restart()
    again = pair.take()
    assert again.number == transfer.number
    assert pair.store(again) is True
    assert bodies(pair.destination.peek()) == ["a", "b"]
    assert numbers_of_origin(pair.destination) == [1, 2]
    pair.end(again)
    assert pair.source.peek() == []


def test_what_is_in_transfer_is_nobody_elses_and_does_not_expire() -> None:
    pair = forward_pair(FragmentSettings(default_ttl_ms=10_000))
    pair.source.send("a")
    assert len(pair.take().firsts) == 1
    assert pair.source.receive() == []
    pair.source.restart()
    assert pair.source.receive() == []
    pair.run_for(60_000)
    assert bodies(pair.source.peek()) == ["a"]
    pair.end(pair.take(), TransferEnd.RETURNED)
    pair.run_for(1_000)
    assert pair.source.peek() == []  # its time to live was over


def test_messages_that_return_are_there_for_receivers_and_for_the_next_transfer(pair: ForwardBench) -> None:
    pair.source.send("a", "b")
    transfer = pair.take()
    pair.end(transfer, TransferEnd.RETURNED)
    (got,) = pair.source.receive(max_count=1)
    assert (got.body, got.deliveries) == (b"a", 0)
    following = pair.take()
    assert following.number > transfer.number and len(following.firsts) == 1


def test_messages_that_are_refused_for_good_are_transfer_dead_letters(pair: ForwardBench) -> None:
    pair.source.send("a", "b")
    pair.end(pair.take(), TransferEnd.REFUSED)
    assert pair.source.receive() == []
    got = pair.source.receive(pair.source.receiver(TRANSFER_DEAD))
    assert bodies(got) == ["a", "b"]
    assert got[0].properties == {"DeadLetterReason": "Why", "DeadLetterErrorDescription": "because"}
    pair.source.restart()
    assert bodies(pair.source.peek(sub_queue=TRANSFER_DEAD)) == ["a", "b"]
    assert pair.source.fragment.counts().transfer_dead_lettered == 2


def test_an_offer_from_before_is_refused_once_a_later_one_was_heard(pair: ForwardBench) -> None:
    pair.source.send("a")
    first = pair.take()
    second = pair.take()
    assert pair.store(second, asks=True) is False
    late = pair.store(first)
    assert isinstance(late, ServiceError) and late.condition is SERVER_BUSY
    assert pair.destination.peek() == []


def test_a_source_that_crashed_is_heard_before_its_earlier_offers(pair: ForwardBench) -> None:
    pair.source.send("a")
    for _ in range(3):
        first = pair.take()
    pair.source.restart()
    assert pair.store(pair.take(), asks=True) is False
    assert isinstance(pair.store(first), ServiceError)


def test_a_number_that_a_power_cut_took_back_is_never_used_again() -> None:
    pair = forward_pair(FragmentSettings(is_express=True))
    pair.source.send("a", wait_ms=500)
    answers: list[OpenTransfer] = []
    pair.source.fragment.take_transfer(SubQueue.MAIN, b"there", answers.append)  # type: ignore[arg-type]
    pair.source.run_for(5)
    (first,) = answers
    pair.source.restart()
    assert pair.source.fragment.open_transfers == []  # it was written, and not synced
    assert pair.take().number > first.number


def test_a_question_waits_for_what_is_being_stored(pair: ForwardBench) -> None:
    pair.source.send("a")
    transfer = pair.take()
    answers: list[object] = []
    store = pair.destination.fragment.store_transfer
    times = pair.destination.times()
    store(pair.name, 5 << 40, transfer.number, transfer.run, transfer.firsts, transfer.ends_ms, times, answers.append)
    empty = transfer.firsts[:0]
    store(pair.name, 6 << 40, transfer.number, bytearray(), empty, empty, times, answers.append)
    assert answers == []
    pair.run_for(50)
    assert answers == [True, True]
    assert bodies(pair.destination.peek()) == ["a"]


def test_sources_and_sub_queues_have_numbers_of_their_own(pair: ForwardBench) -> None:
    pair.source.send("a")
    transfer = pair.forward()
    other = ForwardBench(QueueBench(), pair.destination, name=b"other/0")
    other.source.send("b")
    assert other.forward().number == transfer.number
    assert bodies(pair.destination.peek()) == ["a", "b"]


def test_a_message_is_forwarded_four_times_and_then_dead_lettered() -> None:
    bench = QueueBench()
    bench.send("goes round", message_id="its id")
    ring = ForwardBench(bench, bench)
    for _ in range(4):
        ring.forward()
    assert bodies(bench.peek()) == ["goes round"]
    answers: list[OpenTransfer] = []
    bench.fragment.take_transfer(SubQueue.MAIN, b"there", answers.append)  # type: ignore[arg-type]
    bench.run_for(500)
    assert answers == [] and bench.peek() == []
    (dead,) = bench.peek(sub_queue=SubQueue.DEAD_LETTERS)
    assert dead.properties is not None
    assert dead.properties["DeadLetterReason"] == "MaxTransferHopCountExceeded"
    assert numbers_of_origin(bench, SubQueue.DEAD_LETTERS) == [1]


def test_a_message_that_has_its_hops_behind_it_holds_up_no_other() -> None:
    bench = QueueBench()
    bench.send("goes round")
    ring = ForwardBench(bench, bench)
    for _ in range(4):
        ring.forward()
    bench.send("new")
    pair = ForwardBench(bench, QueueBench())
    pair.forward()
    assert bodies(pair.destination.peek()) == ["new"]
    assert bodies(bench.peek(sub_queue=SubQueue.DEAD_LETTERS)) == ["goes round"]


def test_a_dead_letter_that_has_its_hops_behind_it_is_a_transfer_dead_letter() -> None:
    bench = QueueBench()
    bench.send("goes round")
    ring = ForwardBench(bench, bench, name=b"dead/1", sub_queue=SubQueue.DEAD_LETTERS)
    for _ in range(4):
        bench.settle(bench.receive(), SettleOutcome.DEAD_LETTER)
        ring.forward()
    bench.settle(bench.receive(), SettleOutcome.DEAD_LETTER)
    bench.fragment.take_transfer(SubQueue.DEAD_LETTERS, b"there", lambda answer: None)
    bench.run_for(500)
    assert bodies(bench.peek(sub_queue=TRANSFER_DEAD)) == ["goes round"]
    assert bench.peek(sub_queue=SubQueue.DEAD_LETTERS) == []


def test_a_dead_letter_takes_its_reason_along_and_says_where_it_was_one(pair: ForwardBench) -> None:
    pair.sub_queue = SubQueue.DEAD_LETTERS
    pair.source.send("a", ttl_ms=5_000, message_id="its id", properties={"n": 1})
    details = SettleDetails(reason="broken", description="in two")
    pair.source.settle(pair.source.receive(), SettleOutcome.DEAD_LETTER, details=details)
    pair.run_for(60_000)  # a dead letter does not expire
    pair.forward()
    (got,) = pair.destination.peek()
    assert got.properties == {"n": 1, "DeadLetterReason": "broken", "DeadLetterErrorDescription": "in two"}
    assert got.ttl_ms == 5_000  # it lives anew
    said = decoded(peeked(pair.destination))
    assert said.message_annotations is not None and said.properties is not None
    assert said.message_annotations["x-opt-deadletter-source"] == "orders"
    assert said.properties.message_id == "its id"


@pytest.mark.parametrize("sub_queue", [SubQueue.MAIN, SubQueue.DEAD_LETTERS])
def test_what_a_sender_says_of_dead_letters_is_told_nobody_and_what_a_forward_says_goes_on(
    pair: ForwardBench, sub_queue: SubQueue
) -> None:
    """With ids, so that records could go as they are: beside one that says nothing, and behind one of a forward."""
    pair.sub_queue = sub_queue
    forged = message("b", message_id="2", annotations={"x-opt-deadletter-source": "a sender's"})
    pair.source.enqueue(message("a", message_id="1"), forged)
    assert sources(pair.source) == [None, None]
    if sub_queue is SubQueue.DEAD_LETTERS:
        pair.source.settle(pair.source.receive(), SettleOutcome.DEAD_LETTER)
        assert sources(pair.source, sub_queue) == [None, None]
    pair.forward()
    expected = [None, None] if sub_queue is SubQueue.MAIN else ["orders", "orders"]
    assert sources(pair.destination) == expected
    pair.destination.enqueue(forged)
    further = ForwardBench(pair.destination, QueueBench())
    further.forward()
    assert sources(further.destination) == [*expected, None]


def sources(bench: QueueBench, sub_queue: SubQueue = SubQueue.MAIN) -> list[object]:
    """What receivers are told of where the messages of a sub-queue were dead-lettered."""
    found = peeked(bench, sub_queue)
    told = [decoded(found, row).message_annotations for row in range(len(found.rows) // MESSAGE_WIDTH)]
    return [each.get("x-opt-deadletter-source") for each in told]


def decoded(found: ReceivedMessages, row: int = 0):  # type: ignore[no-untyped-def]  # a message
    return decode_message(encode_message(found.run, found.rows, row, b"0" * 16))


def test_a_message_keeps_the_id_that_it_had_without_one(pair: ForwardBench) -> None:
    pair.source.enqueue(message("none"), message("own", message_id="mine"), message("none either", session="s"))
    prefix = pair.source.log.log_id[:16]
    was = peeked(pair.source)
    ids = [
        decode_message(encode_message(was.run, was.rows, row, prefix.encode())).properties.message_id  # type: ignore[union-attr]
        for row in range(3)
    ]
    pair.forward()
    now = peeked(pair.destination)
    messages = [decoded(now, row) for row in range(3)]
    assert (
        [each.properties.message_id for each in messages] == ids == [f"{prefix}{1:016x}", "mine", f"{prefix}{3:016x}"]
    )
    assert messages[2].properties.group_id == "s"


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_properties_that_a_receiver_changed_go_along(pair: ForwardBench, changed: int) -> None:
    pair.source.send("a", "b", "c", message_id="x")
    got = pair.source.receive()
    details = SettleDetails(properties=b"\xc1\x06\x02\xa1\x01n\x54\x01")
    pair.source.settle(got[changed : changed + 1], SettleOutcome.ABANDON, details=details)
    pair.source.settle(got[:changed] + got[changed + 1 :], SettleOutcome.RELEASE)
    pair.forward()
    got = pair.destination.receive()
    properties: list[object] = [None, None, None]
    properties[changed] = {"n": 1}
    assert [(each.body, each.properties, each.deliveries) for each in got] == [
        (body, its, 0) for body, its in zip((b"a", b"b", b"c"), properties, strict=True)
    ]


def test_a_time_to_live_goes_on_where_a_message_goes(pair: ForwardBench) -> None:
    pair.source.send("short", ttl_ms=20_000)
    pair.source.send("long")
    (until_ms,) = [each.expires_ms for each in pair.source.peek()][:1]
    pair.run_for(15_000)
    pair.forward()
    short, long = pair.destination.peek()
    assert (short.expires_ms, long.expires_ms) == (until_ms, -1)
    assert short.ttl_ms == until_ms - short.enqueued_ms < 6_000
    pair.destination.restart()
    pair.run_for(10_000)
    assert bodies(pair.destination.peek()) == ["long"]


def test_the_shorter_of_both_times_to_live_holds() -> None:
    pair = forward_pair(FragmentSettings(default_ttl_ms=100_000), FragmentSettings(default_ttl_ms=5_000))
    pair.source.send("a")
    pair.forward()
    (got,) = pair.destination.peek()
    assert got.ttl_ms == 5_000


def test_the_destination_finds_duplicates_and_sessions_its_own_way() -> None:
    pair = forward_pair(None, FragmentSettings(duplicate_window_ms=60_000, requires_session=True))
    pair.source.enqueue(
        message("a", message_id="1", session="s"),
        message("again", message_id="1", session="s"),
        message("b", message_id="2"),
        message("c", message_id="3", session="t"),
    )
    pair.forward()
    for _ in range(2):
        assert bodies(pair.destination.peek(session="s")) == ["a"]
        assert bodies(pair.destination.peek(session="t")) == ["c"]
        (dead,) = pair.destination.peek(sub_queue=SubQueue.DEAD_LETTERS)
        assert dead.properties is not None and dead.properties["DeadLetterReason"] == "Session ID is null."
        assert bodies(pair.destination.peek()) == ["a", "c"]
        pair.destination.restart()


def test_a_destination_that_is_full_refuses_and_has_nothing_of_it() -> None:
    pair = forward_pair(None, FragmentSettings(max_size_bytes=300))
    pair.source.send("x" * 400)
    transfer = pair.take()
    answer = pair.store(transfer)
    assert isinstance(answer, ServiceError) and answer.condition is RESOURCE_LIMIT
    assert pair.store(transfer, asks=True) is False
    pair.end(transfer, TransferEnd.RETURNED)
    assert len(pair.source.receive()) == 1


def test_many_messages_go_in_several_transfers_in_order(pair: ForwardBench) -> None:
    for batch in range(4):
        pair.source.send(*(f"{batch}.{place:0100}" for place in range(700)), message_id="x")
    sent = bodies(pair.source.peek())[:1000]
    sizes = []
    while pair.source.fragment.counts().active:
        sizes.append(len(pair.forward().firsts))
    assert sum(sizes) == 2_800 and max(sizes) == 1_024
    assert bodies(pair.destination.peek()) == sent
    found = numbers_of_origin(pair.destination)  # of transfers of several batches
    assert found == list(range(1, 1 + len(found))) and len(found) > 1_000


def test_large_messages_go_one_by_one(pair: ForwardBench) -> None:
    pair.source.send("x" * 300_000, "y" * 300_000)
    assert len(pair.forward().firsts) == 1
    assert len(pair.forward().firsts) == 1
    assert [each.body[:1] for each in pair.destination.peek()] == [b"x", b"y"]


def test_locked_deferred_and_scheduled_messages_stay_until_they_are_active(pair: ForwardBench) -> None:
    pair.source.send("locked", "deferred", "active")
    locked, deferred = pair.source.receive(max_count=2)
    pair.source.settle([deferred], SettleOutcome.DEFER)
    pair.source.send("later", scheduled_ms=pair.source.now_ms() + 5_000)
    pair.forward()
    assert bodies(pair.destination.peek()) == ["active"]
    pair.source.settle([locked], SettleOutcome.ABANDON)
    pair.run_for(6_000)
    pair.forward()
    assert bodies(pair.destination.peek()) == ["active", "locked", "later"]
    assert numbers_of_origin(pair.destination) == [3, 1, 5]
    assert bodies(pair.source.peek()) == ["deferred"]


def test_whoever_takes_anew_leaves_nothing_to_who_waited_before(pair: ForwardBench) -> None:
    answers: list[OpenTransfer] = []
    take = pair.source.fragment.take_transfer
    take(SubQueue.MAIN, b"there", answers.append)  # type: ignore[arg-type]
    take(SubQueue.MAIN, b"elsewhere", answers.append)  # type: ignore[arg-type]
    assert [each.number for each in answers] == [0]
    pair.source.send("a", wait_ms=200)
    assert answers[1].destination == b"elsewhere"
    assert pair.take(b"").number == answers[1].number
    pair.end(answers[1])
    assert pair.take(b"").number == 0


def test_an_end_that_is_told_twice_ends_nothing_else(pair: ForwardBench) -> None:
    pair.source.send("a")
    first = pair.forward()
    pair.source.send("b")
    second = pair.take()
    pair.end(first)
    pair.end(first, TransferEnd.REFUSED)
    assert bodies(pair.source.peek()) == ["b"]
    with pytest.raises(ServiceError):
        end = pair.source.fragment.end_transfer
        end(SubQueue.MAIN, second.number + 1, second.attempt, TransferEnd.STORED, lambda answer: None)


@pytest.mark.parametrize("how", [TransferEnd.REFUSED, TransferEnd.RETURNED])
def test_only_the_word_about_the_last_attempt_gives_messages_back(pair: ForwardBench, how: TransferEnd) -> None:
    pair.source.send("a")
    first, second = pair.take(), pair.take()
    with pytest.raises(ServiceError):
        pair.source.fragment.end_transfer(SubQueue.MAIN, first.number, first.attempt, how, lambda answer: None)
    assert pair.store(second) is True
    pair.end(first)  # that it was stored is true, whoever says it
    assert pair.source.peek() == []


def test_records_that_cannot_be_read_are_left_aside(pair: ForwardBench) -> None:
    pair.source.send("a", "b")
    pair.source.send("c")
    core = pair.source.fragment.core
    read, damaged = core.reads.begin, core.state.messages.find(2)
    assert damaged is not None
    index = damaged[0].rows[damaged[1]]

    def fails(indexes: array[int], *more: object) -> None:
        if index in indexes:
            error = CorruptStore("damaged", first_index=index, resume_index=index + 1)
            more[-1](Refused(error))  # type: ignore[operator]
        else:
            read(indexes, *more)  # type: ignore[arg-type]

    core.reads.begin = fails  # type: ignore[method-assign]
    transfer = pair.take()
    assert transfer.number > 0 and not transfer.firsts
    assert pair.store(transfer) is False
    pair.end(transfer, TransferEnd.RETURNED)
    pair.forward()
    assert bodies(pair.destination.peek()) == ["a", "c"]
