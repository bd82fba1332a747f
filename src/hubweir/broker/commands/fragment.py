"""Fragments of queues and of subscriptions: made, opened, changed, deleted; sent to, received from, settled, peeked at.

A fragment is named by its log id. Tokens are 16 bytes each, back to back (kernels/queue/tokens.py). Numbers of messages
are sequence numbers as clients see them, in bytes of array('q').
Long because all that a fragment may be asked, and its answers, stand on one page.
"""

from __future__ import annotations

from typing import ClassVar

from hubweir.broker.commands.command import (
    Answer,
    Cost,
    CreateLog,
    LogCommand,
    OwnedCommand,
    Push,
    answer,
    command,
    in_namespace,
    push,
)
from hubweir.broker.commands.process import Done
from hubweir.errors import Condition
from hubweir.messaging_store.log import Durability
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue


@command(30, Done)
class CreateFragment(CreateLog, frozen=True):
    """Make the log of a new fragment; does nothing when it is there (creation is resumed after a crash).

    entity: the path of the queue or subscription, for people. fragment_number: its place among those of its entity.
    """

    entity: str
    settings: FragmentSettings
    namespace: str = ""
    fragment_number: int = 0

    @property
    def name(self) -> str:
        return in_namespace(f"fragment {self.fragment_number} of {self.entity}", self.namespace)

    @property
    def log_durability(self) -> Durability:
        return self.settings.durability


@command(31, Done)
class OpenFragment(CreateFragment, frozen=True):
    """Open the log of a fragment that was made before; it is never made anew, whatever became of its files."""

    makes: ClassVar[bool] = False


@command(32, Done)
class DeleteFragment(LogCommand, frozen=True):
    """Remove a fragment's log and end its receivers; does nothing when it is gone.

    While it is being removed the same command joins: both are answered when it is done.
    """


@command(33, Done)
class ChangeFragment(LogCommand, frozen=True):
    """Set all settings of a fragment. Answered when they are durable."""

    settings: FragmentSettings


@answer(90)
class MessagesEnqueued(Answer, frozen=True):
    """The messages are as durable as the entity's mode says, and count from now on.

    first_number, next_number: sequence numbers, end exclusive: what was sent has them in its order, duplicates too,
    of which there is no message.
    """

    first_number: int
    next_number: int


@command(34, MessagesEnqueued)
class EnqueueMessages(LogCommand, frozen=True):
    """Store a run of sealed batches of messages (headers not completed) whole. The broker owns run from now on.

    The run is made with ingest(name=None) of deliveries of format 0 or of batches. Scheduled messages are those whose
    annotation says so. messages, size_bytes: how many there are; the bytes of their deliveries. A run that is refused
    as known is the asker's again: its headers may be completed, and another fragment completes them anew.
    """

    run: bytearray
    messages: int
    size_bytes: int


@answer(91)
class ReceiverOpened(Answer, frozen=True):
    """receiver_id is the broker's. session_id, locked_until_ms (wall clock): of its session, else None."""

    receiver_id: int
    session_id: str | None = None
    locked_until_ms: int | None = None


@command(35, ReceiverOpened, cost=Cost.WAIT)
class OpenReceiver(OwnedCommand, frozen=True):
    """Receive from a sub-queue. Of an entity with sessions: lock one, the named one, or with None the next free one.

    with_session: a session is wanted. wait_ms: how long to wait for the next free one; then refused with TIMED_OUT.
    A named session that another one holds is refused at once with SESSION_CANNOT_BE_LOCKED; a receiver of the wrong
    kind with NOT_ALLOWED (the texts of contract 4.1.3). wait: a name that no other has, for GiveUpSession.
    """

    sub_queue: SubQueue
    mode: ReceiveMode
    with_session: bool = False
    session_id: str | None = None
    wait_ms: int = 0
    wait: str = ""


@command(56, Done, cost=Cost.END)
class GiveUpSession(LogCommand, frozen=True):
    """Nobody wants the session any more that OpenReceiver waits for: it is refused. Answered already: nothing."""

    wait: str


@command(36, Done, cost=Cost.END)
class CloseReceiver(LogCommand, frozen=True):
    """The link is gone. Its session is free at once; locks of other messages stay until they end (contract 4.2.5)."""

    receiver_id: int


@answer(92)
class MessagesReceived(Answer, frozen=True):
    """run holds the records of messages; rows: message rows (kernels/contract.py, Q_…) in bytes of array('q').

    Q_RECORD is a position in run; what else lies there means nothing. No rows: nothing was there.
    """

    run: bytes | memoryview
    rows: bytes


@command(37, MessagesReceived, cost=Cost.WAIT)
class ReceiveMessages(LogCommand, frozen=True):
    """The next messages of a receiver, at least one and at most max_count; one outstanding a receiver.

    waits: until there is one; otherwise it is answered without rows when none is ready in the fragment's next turn.
    Answered without rows after CancelReceive. max_bytes: of records, but for the first.
    In a session under PEEK_LOCK, the messages of one that waits come by MessagesGiven, maybe more than once. It is
    answered behind them, without rows: when as many came as it asked for, or others that are ready do not fit.
    """

    receiver_id: int
    max_count: int
    max_bytes: int
    waits: bool = True


@command(38, Done, cost=Cost.END)
class CancelReceive(LogCommand, frozen=True):
    """Give up the outstanding receive of a receiver: it is answered with what it has already, or without rows.

    Answered behind it. Messages that were being read stay locked and are part of that answer.
    """

    receiver_id: int


@answer(93)
class MessagesSettled(Answer, frozen=True):
    """codes: a byte for each token: 0 done and durable, 1 the lock is lost, 2 the lock of the session is lost."""

    codes: bytes


@command(39, MessagesSettled)
class SettleMessages(LogCommand, frozen=True):
    """Settle the messages of these tokens, each on its own: some may be lost and others done."""

    tokens: bytes
    outcome: SettleOutcome
    details: SettleDetails | None = None


@answer(94)
class LocksRenewed(Answer, frozen=True):
    """until_ms: the end of each lock on the wall clock, in bytes of array('q'); 0: that lock is lost."""

    until_ms: bytes


@command(40, LocksRenewed)
class RenewLocks(LogCommand, frozen=True):
    """Lock the messages of these tokens for the entity's lock duration from now on."""

    tokens: bytes


@command(41, MessagesReceived)
class PeekMessages(LogCommand, frozen=True):
    """Messages from this sequence number on, in its order and whatever their state; nothing is locked.

    session_id: of this session alone.
    """

    sub_queue: SubQueue
    from_number: int
    max_count: int
    max_bytes: int
    session_id: str | None = None


@command(42, MessagesReceived)
class ReceiveDeferred(LogCommand, frozen=True):
    """The deferred messages of these numbers, all of them; refused with MESSAGE_NOT_FOUND when one is none."""

    sub_queue: SubQueue
    numbers: bytes
    mode: ReceiveMode
    session_id: str | None = None


@command(43, Done)
class CancelScheduled(LogCommand, frozen=True):
    """Remove scheduled messages, all of them; refused with MESSAGE_NOT_FOUND when one is not scheduled (any more)."""

    numbers: bytes


@answer(95)
class MessagesDeleted(Answer, frozen=True):
    """How many are gone for good."""

    count: int


@command(44, MessagesDeleted)
class DeleteMessages(LogCommand, frozen=True):
    """Delete the oldest active messages that were enqueued before a time; what is locked is passed over."""

    sub_queue: SubQueue
    max_count: int
    before_ms: int
    session_id: str | None = None


@answer(96)
class FragmentInfo(Answer, frozen=True):
    """What a fragment holds now. Locked messages are active ones. size_bytes: of records, whatever their state.

    accessed_at_ms: when its log was last written to, by a send or by what receivers did; None: nothing was ever sent.
    unused_ms: for how long nobody used it, while its broker had it open; 0 while a receiver is open, or a message is
    scheduled. Of a topic: nor any of its subscriptions.
    """

    log_id: str
    active: int
    dead_lettered: int
    scheduled: int
    deferred: int
    transfer_dead_lettered: int
    size_bytes: int
    accessed_at_ms: int | None = None
    unused_ms: int = 0


@command(45, FragmentInfo)
class AskFragmentInfo(LogCommand, frozen=True):
    """Answered FragmentInfo, as it is at that moment. To ask is no use."""


@answer(97)
class SessionRenewed(Answer, frozen=True):
    """locked_until_ms: on the wall clock."""

    locked_until_ms: int


@command(46, SessionRenewed)
class RenewSession(LogCommand, frozen=True):
    """Lock a session for the entity's lock duration from now on; SESSION_LOCK_LOST when nobody holds it."""

    session_id: str


@answer(98)
class SessionStateRead(Answer, frozen=True):
    """state: as it was set; None when there is none."""

    state: bytes | None


@command(47, SessionStateRead)
class GetSessionState(LogCommand, frozen=True):
    """Answered SessionStateRead; refused with SESSION_LOCK_LOST when nobody holds the session."""

    session_id: str


@command(48, Done)
class SetSessionState(LogCommand, frozen=True):
    """Keep a session's state, or with None none. Answered when that is durable; SESSION_LOCK_LOST as above."""

    session_id: str
    state: bytes | None


@answer(99)
class SessionsListed(Answer, frozen=True):
    """In the order that ListSessions says. passed: how many of them the skip passed over."""

    session_ids: tuple[str, ...]
    passed: int = 0


@command(49, SessionsListed)
class ListSessions(LogCommand, frozen=True):
    """Sessions by the order of their first message or state, from the skip-th on, at most `top`.

    updated_after_ms: those whose state was set after this time; None: those that have active messages or state.
    """

    updated_after_ms: int | None
    skip: int
    top: int


@push(142)
class MessagesGiven(Push, frozen=True):
    """Messages for receivers in sessions of one owner, all of which have a receive outstanding that waits.

    receivers: their ids, then how many messages each gets of the rows, in order, in bytes of array('q'). run, rows: as
    of MessagesReceived.
    """

    log_id: str
    receivers: bytes
    run: bytes | memoryview
    rows: bytes


@push(140)
class SessionLost(Push, frozen=True):
    """The lock of a receiver's session ended (its time was over, or the entity is gone): its link is detached."""

    log_id: str
    receiver_id: int
    condition: Condition
    text: str
