"""A message whose id was there within the window is accepted and dropped."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from hubweir.amqp.types.values import ULong
from hubweir.errors import MESSAGE_NOT_FOUND, RESOURCE_LIMIT, ServiceError
from hubweir.kernels.queue_contract import I_ID, I_ID_LENGTH, INCOMING_WIDTH
from hubweir.queue import duplicate_window
from hubweir.queue.duplicate_window import DuplicateWindow, hash_of
from hubweir.queue.tests.conftest import QueueBench, bodies, message, run_of
from hubweir.queue.tests.session_bench import SessionBench
from hubweir.queue.window_clock import SLACK_MS
from hubweir.testing.memory_faults import Fault

WINDOW_MS = 20_000


@pytest.fixture
def window(bench_with: Callable[..., QueueBench]) -> QueueBench:
    return bench_with(duplicate_window_ms=WINDOW_MS)


def test_a_second_message_of_an_id_is_accepted_and_dropped(window: QueueBench) -> None:
    assert window.send("a", message_id="m1") == [1]
    assert window.send("b", message_id="m1") == [2], "a number, of which there is no message"
    assert window.send("c", message_id="m2") == [3]
    assert [(each.number, each.body) for each in window.receive()] == [(1, b"a"), (3, b"c")]
    counts = window.fragment.counts()
    assert counts.active == 2 and counts.size_bytes < 400


def test_an_id_keeps_out_those_of_its_own_key_alone_where_keys_count(bench_with: Callable[..., QueueBench]) -> None:
    window = bench_with(duplicate_window_ms=WINDOW_MS, duplicates_have_keys=True)
    sent: list[dict[str, Any]] = [{"key": "a"}, {"key": "b"}, {}, {"session": "a"}, {"session": "c"}]
    for each in [*sent, *sent, {"key": ""}, {"session": "b", "key": "b"}]:
        window.send(str(each), message_id="m", **each)
    kept = [{"key": "a"}, {"key": "b"}, {}, {"session": "c"}]  # a session id is a key as any other, an empty key none
    assert bodies(window.peek()) == [str(each) for each in kept]
    window.restart()
    for each in sent:
        window.send("x", message_id="m", **each)
    assert len(window.peek()) == len(kept)


def test_keys_make_no_difference_elsewhere(window: QueueBench) -> None:
    window.send("a", message_id="m", key="a")
    window.send("b", message_id="m", key="b")
    assert bodies(window.receive()) == ["a"]


def test_within_one_batch_and_by_message_duplicates_are_dropped(window: QueueBench) -> None:
    numbers = window.enqueue(
        message("a", message_id="1"), message("b", message_id="2"), message("c", message_id="1"), message("d")
    )
    assert (numbers.first_number, numbers.next_number) == (1, 5)  # type: ignore[union-attr]
    assert [(each.number, each.body) for each in window.receive()] == [(1, b"a"), (2, b"b"), (4, b"d")]


def test_messages_without_an_id_are_never_duplicates(window: QueueBench) -> None:
    assert window.send("a") + window.send("a") == [1, 2]


def test_an_id_counts_after_its_message_is_gone_and_until_the_window_is_over(window: QueueBench) -> None:
    window.send("a", message_id="m")
    window.complete(window.receive())
    window.run_for(WINDOW_MS - 200)
    window.send("b", message_id="m")
    assert window.receive() == []
    window.run_for(200 + SLACK_MS)  # the duplicate did not begin the window anew
    window.send("c", message_id="m")
    window.send("d", message_id="m")
    assert bodies(window.receive()) == ["c"]


def test_the_window_stands_over_a_restart_by_log_and_by_snapshot(window: QueueBench) -> None:
    window.fragment.upkeep.snapshot_records = 1
    window.send("a", message_id="in the snapshot")
    window.fragment.maintain(window.times())
    window.run_for(500)
    window.send("b", message_id="in the log")
    for _ in range(2):
        window.restart()
        window.send("x", message_id="in the snapshot")
        window.send("x", message_id="in the log")
    assert window.send("c", message_id="new") == [7]
    assert bodies(window.receive(wait_ms=500)) == ["a", "b", "c"]


def test_scheduled_messages_count_from_when_they_were_sent(window: QueueBench) -> None:
    assert window.send("a", message_id="m", scheduled_ms=window.now_ms() + 5_000) == [1]
    window.send("b", message_id="m")
    window.run_for(6_000)
    window.send("c", message_id="m")
    assert bodies(window.receive()) == ["a"]


def test_a_scheduled_duplicate_has_a_number_of_which_nothing_is_found(window: QueueBench) -> None:
    at_ms = window.now_ms() + 5_000
    assert window.send("a", message_id="m", scheduled_ms=at_ms) == [1]
    assert window.send("b", message_id="m", scheduled_ms=at_ms) == [2]
    assert window.fragment.counts().scheduled == 1
    with pytest.raises(ServiceError) as refused:
        window.fragment.cancel_scheduled(array("q", [2]), print)
    assert refused.value.condition is MESSAGE_NOT_FOUND
    window.restart()
    assert window.send("c", message_id="n") == [3]
    assert bodies(window.peek()) == ["a", "c"]


def test_a_duplicate_is_in_no_session() -> None:
    sessions = SessionBench(duplicate_window_ms=WINDOW_MS)
    sent = (("a", "m"), ("b", "m"), ("c", "n"))
    sessions.enqueue(*(message(body, message_id=name, session=body) for body, name in sent))
    assert [bodies(sessions.receive(sessions.accept())) for _ in range(2)] == [["a"], ["c"]]
    assert set(sessions.fragment._core.state.sessions.by_id) == {b"a", b"c"}


def test_ids_of_every_type_are_told_apart_by_value_and_type(window: QueueBench) -> None:
    ids = ["7", UUID(int=7), ULong(7), b"7"]
    for _ in range(2):
        for each in ids:
            window.send("x", message_id=each)
        assert window.fragment.counts().active == 4


def test_one_value_has_one_hash_however_it_is_encoded() -> None:
    def of(encoded: bytes) -> int:
        return hash_of(encoded, 0, len(encoded))

    assert of(b"\xa1\x02ab") == of(b"\xb1\x00\x00\x00\x02ab") != of(b"\xa0\x02ab")
    assert of(b"\x53\x07") == of(b"\x80" + bytes(7) + b"\x07") and of(b"\x44") == of(b"\x53\x00")
    assert of(b"\x98" + bytes(16)) != of(b"\xa0\x10" + bytes(16))


def test_an_id_and_its_key_are_not_taken_for_one_another() -> None:
    pairs = [("ab", b"c"), ("a", b"bc"), ("abc", None), ("abc", b""), ("c", b"ab"), ("bc", b"a"), ("kab", b"c")]
    hashes = {hash_of(b"\xa1" + bytes((len(name),)) + name.encode(), 0, len(name) + 2, key) for name, key in pairs}
    assert len(hashes) == len(pairs)


def test_who_would_bring_more_ids_than_there_is_room_for_is_refused_and_later_is_not(window: QueueBench) -> None:
    window.fragment._core.state.duplicates.limit = 5
    for place in range(5):
        window.send("x", message_id=str(place))
    with pytest.raises(ServiceError) as refused:
        window.send("x", message_id="5")
    assert refused.value.condition is RESOURCE_LIMIT
    assert window.fragment.counts().active == 5
    window.run_for(WINDOW_MS + SLACK_MS)
    assert window.send("x", message_id="5") == [6]


def test_ids_on_their_way_take_room(window: QueueBench) -> None:
    window.fragment._core.state.duplicates.limit = 3
    first = run_of(message("a", message_id="1"), message("b", message_id="2"))
    window.fragment.enqueue(first, 2, window.times(), print)
    with pytest.raises(ServiceError):
        window.fragment.enqueue(
            run_of(message("a", message_id="3"), message("b", message_id="4")), 2, window.times(), print
        )


def test_a_first_message_that_the_log_refused_keeps_no_other_out(window: QueueBench) -> None:
    window.env.files.plan(Fault.SYNC_EIO)
    window.enqueue(message("a", message_id="m"), wait_ms=3_000)
    assert window.send("b", message_id="m", wait_ms=500) == [1]
    assert bodies(window.receive()) == ["b"]


def test_a_send_that_was_stamped_ahead_and_refused_makes_no_window_shorter(window: QueueBench) -> None:
    """The clock is ahead at a send that the log refuses, then right, and ahead again: nothing of that is in the log."""
    window.env.jump(2 * WINDOW_MS)
    window.env.files.plan(Fault.SYNC_EIO)
    window.enqueue(message("a", message_id="m"), wait_ms=3_000)
    window.env.jump(-2 * WINDOW_MS)
    window.send("b", message_id="m", wait_ms=500)
    window.env.jump(2 * WINDOW_MS)
    window.send("c", message_id="m")
    assert bodies(window.receive()) == ["b"]


def test_a_refused_send_that_was_to_have_the_room_of_older_ids_forgets_none_of_them(window: QueueBench) -> None:
    """Else a message is stored that a replay drops: here the clock is set back behind the refusal."""
    window.fragment.core.state.duplicates.limit = 1
    window.send("a", message_id="m")
    window.run_for(WINDOW_MS + SLACK_MS)
    window.env.files.plan(Fault.SYNC_EIO)
    window.enqueue(message("b", message_id="n"), wait_ms=3_000)
    window.env.jump(-2 * WINDOW_MS)
    with pytest.raises(ServiceError):
        window.send("c", message_id="m")
    assert bodies(window.receive()) == ["a"]


def test_generations_answer_as_one_window_and_go_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicate_window, "GENERATION_IDS", 10)
    window, seen = DuplicateWindow(), {}

    def send(name: int, time_ms: int) -> bool:
        data = b"\xa1\x02%02d" % name
        fields = array("q", [-1] * INCOMING_WIDTH)
        fields[I_ID], fields[I_ID_LENGTH] = 0, len(data)
        return not window.duplicates_in(data, fields, enqueued_ms=time_ms, window_ms=100)

    assert [send(98, 500), send(99, 550), send(98, 599), send(98, 600), send(98, 601)] == [
        True,
        True,
        False,
        True,
        False,
    ]
    for time_ms in range(1_000, 3_000, 3):
        name = (time_ms * 7919) % 97
        expected = name not in seen or time_ms - seen[name] >= 100
        assert send(name, time_ms) == expected
        if expected:
            seen[name] = time_ms
        if time_ms % 51 == 0:
            again = DuplicateWindow()
            assert again.restore(memoryview(window.encode()), 0) == len(window.encode())
            assert len(again) == len(window)
            window = again
    assert len(window) <= 60
