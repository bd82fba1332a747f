"""Messages that a link keeps: which are given back, which were taken away, which are being taken."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import cast

from hubweir.amqp.transport.sender_link import SenderLink, SendProgress
from hubweir.gateway.amqp.kept_messages import KeptMessages, name_partition
from hubweir.kernels.contract import (
    MESSAGE_WIDTH,
    Q_LOCK,
    Q_LOCK_CHECK,
    Q_LOCKED_UNTIL_MS,
    Q_PARTITION,
    Q_RECORD,
    RunCursor,
)


def locked_rows(*locks: int) -> array[int]:
    rows = array("q", bytes(8 * MESSAGE_WIDTH * len(locks)))
    for row, lock in enumerate(locks):
        rows[row * MESSAGE_WIDTH + Q_LOCK] = lock
        rows[row * MESSAGE_WIDTH + Q_LOCK_CHECK] = -lock
        rows[row * MESSAGE_WIDTH + Q_LOCKED_UNTIL_MS] = 1_000
    return rows


def kept(*locks: int, are_taken: bool = False) -> KeptMessages:
    messages = KeptMessages()
    messages.put(b"run", locked_rows(*locks), are_taken=are_taken)
    return messages


def locks_of(tokens: bytes) -> list[int]:
    return [int.from_bytes(tokens[at : at + 8], "big") for at in range(0, len(tokens), 16)]


def test_what_is_locked_is_given_back_once() -> None:
    messages = kept(1, 2, 3)
    assert messages.count == 3 and messages.are_locked and not messages.reserved
    assert locks_of(messages.release()) == [1, 2, 3]
    assert messages.count == 0 and messages.release() == b""


def test_what_was_received_and_deleted_is_never_given_back() -> None:
    messages = kept(1, 2, are_taken=True)
    assert messages.is_taken and not messages.are_locked
    assert messages.release() == b"" and messages.count == 2


def test_the_next_ones_are_taken_away_and_the_rest_is_given_back_meanwhile() -> None:
    messages = kept(1, 2, 3, 4)
    assert locks_of(messages.taking(2)) == [1, 2]
    assert (messages.is_taking, messages.is_taken, messages.reserved) == (True, False, 2)
    assert locks_of(messages.release()) == [3, 4]
    assert messages.count and not messages.are_locked
    messages.took(bytes(2))
    assert (messages.is_taking, messages.is_taken, messages.reserved) == (False, True, 2)
    assert messages.release() == b""


def test_what_was_taken_away_carries_no_lock_and_one_whose_lock_ended_is_somebody_elses() -> None:
    messages = kept(1, 2, 3, 4)
    messages.taking(3)
    messages.took(bytes([0, 1, 0]))
    rows = messages._rows
    assert rows[Q_LOCK::MESSAGE_WIDTH].tolist() == [0, 0, 4] == [-each for each in rows[Q_LOCK_CHECK::MESSAGE_WIDTH]]
    assert rows[Q_LOCKED_UNTIL_MS::MESSAGE_WIDTH].tolist() == [-1, -1, 1_000]
    assert messages.reserved == 2 and locks_of(messages.release()) == [4]
    messages = kept(1)
    messages.taking(5)
    messages.took(b"\1")
    assert not messages.count and not messages.is_taking


def test_what_is_taken_behind_messages_that_went_out_is_what_follows_them() -> None:
    messages = kept(1, 2, 3, 4)
    name_partition(messages._rows, 0)
    messages._rows[Q_PARTITION::MESSAGE_WIDTH] = array("q", [1, 2, 3, 4])
    messages.taking(2)
    messages.took(bytes(2))
    gone = SendProgress(2, 100, RunCursor(), 0)
    link = SimpleNamespace(send_messages=lambda *_, **__: gone)
    assert messages.send(cast(SenderLink, link), b"", takes=True, sent=None, max_bytes=1_000) is gone
    assert locks_of(messages.taking(1)) == [3]
    messages.took(bytes(1))
    assert messages._rows[Q_PARTITION::MESSAGE_WIDTH].tolist() == [3, 4] and messages.reserved == 1
    assert locks_of(messages.release()) == [4]


def test_what_could_not_be_taken_away_is_locked_as_before() -> None:
    messages = kept(1, 2)
    messages.taking(1)
    messages.not_taken()
    assert not messages.is_taking and not messages.reserved
    assert locks_of(messages.release()) == [1, 2]


def test_every_message_names_its_partition() -> None:
    rows = locked_rows(1, 2)
    name_partition(rows, 15)
    assert rows[Q_PARTITION::MESSAGE_WIDTH].tolist() == [15, 15]


def test_nothing_stays_in_memory_of_what_was_sent() -> None:
    messages, first, rest = kept(1, 2, 3), SendProgress(1, 50, RunCursor(), 0), SendProgress(2, 100, RunCursor(), 1)
    progress = iter((first, rest))
    link = cast(SenderLink, SimpleNamespace(send_messages=lambda *_, **__: next(progress)))
    messages.send(link, b"", takes=False, sent=None, max_bytes=1_000)
    assert messages.size_bytes and messages.count == 2, "one that is to be sent keeps the run"
    messages.send(link, b"", takes=False, sent=None, max_bytes=1_000)
    assert messages.size_bytes == 0 and messages.count == 0


def test_messages_that_come_while_others_are_kept_stand_behind_them() -> None:
    messages = KeptMessages()
    messages.add(b"first", locked_rows(1, 2))
    more = locked_rows(3, 4)
    more[MESSAGE_WIDTH + Q_RECORD] = 3
    messages.add(memoryview(b"second"), more)
    assert messages.count == 4 and messages.are_locked and not messages.is_taken
    assert (bytes(messages._run), messages._rows[Q_RECORD::MESSAGE_WIDTH].tolist()) == (b"firstsecond", [0, 0, 5, 8])
    assert locks_of(messages.release()) == [1, 2, 3, 4]


def test_messages_that_come_when_some_were_sent_are_kept_with_the_rest() -> None:
    messages = kept(1, 2, 3)
    progress = SendProgress(2, 100, RunCursor(), 0)
    link = cast(SenderLink, SimpleNamespace(send_messages=lambda *_, **__: progress))
    messages.send(link, b"", takes=False, sent=None, max_bytes=1_000)
    messages.add(b"more", locked_rows(4, 5))
    assert messages.count == 3
    assert locks_of(messages.release()) == [3, 4, 5]
