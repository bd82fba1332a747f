"""Fan-out: a topic's active messages become messages of the subscriptions whose rules let them through.

A few messages at a time are read, held against the rules, and copied by one chain in the log: the records of copies
that an action changed, which subscriptions get which messages in which order, what becomes a dead letter at once, and
the removal of the messages from the topic. So a crash leaves a message with the topic, or with all its subscriptions.
Where the changed copies of one message are too many bytes for that, several chains make them, and the log says how far
they are. A copy that is as it was sent shares the record; it costs a row in memory, and no byte in the log.

A message without a session id is a dead letter of a subscription that requires sessions; so is, where a subscription
says so, one that a rule cannot be asked about.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter

from msgspec import Struct

from hubweir.errors import STORE_OFFLINE, CorruptStore, EncodeError
from hubweir.kernels import number_ranges
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_RECORD
from hubweir.kernels.queue_contract import M_INDEX, M_SESSION, M_STATE, SETTLING
from hubweir.messaging_store.log import Appended, Refused
from hubweir.queue.changed_properties import dead_letter_properties, record_of
from hubweir.queue.fragment import Times
from hubweir.queue.fragment_core import RETRY_MS, FragmentCore
from hubweir.queue.fragment_state import NO_SESSION
from hubweir.queue.given_id import id_prefix_of
from hubweir.queue.operation import DEAD_LETTERED, MODIFIED, RANGES_LIMIT, SETTLED, Operation
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.traced_step import Trace
from hubweir.queue.upkeep import chain_of
from hubweir.topic.changed_message import write_copy
from hubweir.topic.filtered_message import EncodedMessage, message_at
from hubweir.topic.rule_matching import ChangedCopy, RuleFailure, action_failure
from hubweir.topic.sql_values import EvaluationFailed
from hubweir.topic.topic_operation import FIRST_PLACE, Place, changed, copied, partly
from hubweir.topic.topic_rules import TopicCopies, TopicRules
from hubweir.topic.topic_state import TopicState

# Of one chain. Rules that look at every message make it shorter: so many evaluations a turn. So do copies: each costs
# some microseconds, and one that an action changed its bytes, which one subscription may exceed twice.
FAN_OUT_MESSAGES, FAN_OUT_BYTES = 1_024, 4 * 1024 * 1024
EVALUATIONS = 4_096
COPIES, CHANGED_BYTES = 16_384, 8 * 1024 * 1024


class CopiedTo(Struct, frozen=True):
    """A subscription as fan-out sees it. keeps_failed: messages that a rule cannot be asked about are dead letters."""

    core: FragmentCore
    keeps_failed: bool


class _Chain:
    """What one chain says, while it is made. All by the numbers of subscriptions."""

    def __init__(self) -> None:
        self.counts: dict[int, array[int]] = {}  # the topic's, in the order of the copies
        self.copies: list[tuple[int, int]] = []  # subscription and count of each record
        self.records: list[bytes] = []
        self.dead: dict[int, list[tuple[int, tuple[str, str]]]] = {}  # place among its counts, and why
        self.made = self.size = 0  # copies; bytes of those that were changed
        self.parted: tuple[int, Place] | None = None  # a message whose copies end here for now

    def is_full(self, more_bytes: int = 0, more_copies: int = 0) -> bool:
        """Whether nothing is to be added, with so much more."""
        return self.size + more_bytes >= CHANGED_BYTES or self.made + more_copies >= COPIES

    def add(self, number: int, count: int, why_dead: tuple[str, str] | None) -> None:
        self.made += 1
        counts = self.counts.setdefault(number, array("q"))
        if why_dead is not None:
            self.dead.setdefault(number, []).append((len(counts), why_dead))
        counts.append(count)


class FanOut:
    """Of one topic; one chain is under way at a time."""

    def __init__(
        self,
        core: FragmentCore,
        state: Callable[[], TopicState],
        rules: TopicRules[int],
        subscriptions: Mapping[int, CopiedTo],
        begins: Callable[[bytearray | memoryview], Trace | None] | None = None,
    ) -> None:
        """core: of the topic's own messages. subscriptions: by number; the owner changes it."""
        self._core = core
        self._state = state
        self._rules = rules
        self._subscriptions = subscriptions
        self._begins = begins  # a trace of the copies of records (traced_step.py); None: nothing is looked at
        self._is_under_way = False
        self._is_on = False
        self._planned: tuple[int, TopicCopies[int]] | None = None  # of the message that is copied partly
        self._most = FAN_OUT_MESSAGES  # fewer where a chain is full with fewer

    def begin(self) -> None:
        """All subscriptions and their rules are there: copies are made from now on."""
        self._is_on = True

    def end(self) -> None:
        """Begin nothing any more."""
        self._is_on = False

    def next_ms(self, times: Times) -> int | None:
        """When there is something to try again, on the monotonic clock; None: nothing is."""
        is_waiting = not self._is_under_way and times.monotonic_ms < self._core.retry_ms
        return self._core.retry_ms if is_waiting else None

    def turn(self, times: Times) -> None:
        """Copy the next messages, if there are any; whoever owns the topic has a turn again when they are copied."""
        core = self._core
        if self._is_under_way or not self._is_on or times.monotonic_ms < core.retry_ms:
            return
        who_gets_all = self._rules.who_gets_all
        if who_gets_all is None:
            costly, most = self._rules.evaluated_count, self._most
        else:
            # Messages enter sessions one by one.
            costly = sum(self._subscriptions[each].core.settings.requires_session for each in who_gets_all)
            most = FAN_OUT_MESSAGES
        most, max_bytes = max(1, min(most, EVALUATIONS // (1 + costly))), FAN_OUT_BYTES // (1 + costly)
        room = array("q", bytes(8 * most))
        many, _ = core.state.messages.select(SubQueue.MAIN, times.stamp_ms, room, most, max_bytes)
        if not many:
            return
        counts = room[:many]
        indexes, rows = array("q", bytes(8 * many)), array("q", bytes(8 * MESSAGE_WIDTH * many))
        core.state.messages.give(
            counts, many, marks=SETTLING, delivered=0, lock_number=0, secret=core.locks.secret, until_ms=-1,
            number_base=core.number_base, partition=-1, indexes=indexes, out=rows,
        )  # fmt: skip
        self._is_under_way = True
        if who_gets_all is not None and self._state().places.keys().isdisjoint(counts):
            if self._begins is None:
                self._copy(counts, self._all_plain(counts, who_gets_all), times)
            else:
                core.reads.begin(indexes, rows, {}, partial(self._read_for_traces, counts, tuple(who_gets_all), times))
        else:
            core.reads.begin(indexes, rows, {}, partial(self._read, counts, rows, times))

    def _all_plain(self, counts: array[int], numbers: Iterable[int]) -> _Chain:
        chain = _Chain()
        for number in numbers:
            if self._subscriptions[number].core.settings.requires_session:
                for count in counts:
                    chain.add(number, count, NO_SESSION if self._session_of(count) < 0 else None)
            else:
                chain.counts[number] = counts
        return chain

    def _read_for_traces(
        self, counts: array[int], numbers: tuple[int, ...], times: Times, answer: bytearray | Refused
    ) -> None:
        """Copy messages as they were sent. What cannot be read has no span, and is copied all the same."""
        trace = None if isinstance(answer, Refused) or self._begins is None else self._begins(answer)
        there = [number for number in numbers if number in self._subscriptions]  # some may have ended meanwhile
        self._copy(counts, self._all_plain(counts, there), times, trace)

    def _read(self, counts: array[int], rows: array[int], times: Times, answer: bytearray | Refused) -> None:
        """The records are there: ask the rules."""
        if isinstance(answer, Refused):
            self._not_read(counts, answer, times)
            return
        self._core.tell_origins(rows)
        id_prefix = id_prefix_of(self._core.log.log_id)
        messages = [message_at(answer, rows, at, id_prefix) for at in range(0, len(rows), MESSAGE_WIDTH)]
        chain = _Chain()
        self._most = min(FAN_OUT_MESSAGES, 2 * self._most)
        used = len(answer)  # bytes of the records of this chain
        for at, (count, message) in enumerate(zip(counts, messages, strict=True)):
            planned, self._planned = self._planned, None
            if planned is None or planned[0] != count:
                [copies] = self._rules.copies([message])
            else:
                copies = planned[1]  # the rules were asked when the first part was made
            if not self._add(chain, count, message, copies):
                self._most = max(1, at)
                left = at + (chain.parted is not None)
                self._core.unlock(counts[left:], marks=SETTLING, change=0)
                used = rows[left * MESSAGE_WIDTH + Q_RECORD] if left < len(messages) else used
                counts = counts[:at]
                break
        trace = None if self._begins is None else self._begins(memoryview(answer)[:used])
        self._copy(counts, chain, times, trace)

    def _add(self, chain: _Chain, count: int, message: EncodedMessage, copies: TopicCopies[int]) -> bool:
        """What the subscriptions get of one message; False when all of it is too much for this chain.

        Then none of it is in the chain, or a part: when nothing else was.
        """
        may_part = not chain.counts
        if not may_part and chain.is_full(len(copies.changed) * len(message.buffer), _many(copies)):
            return False
        has_session = self._session_of(count) >= 0
        last, told = FIRST_PLACE, set[int]()
        for place, made in _placed(copies, self._state().places.get(count, FIRST_PLACE)):
            number = place[0]
            if may_part and chain.is_full() and (number != last[0] or chain.size >= 2 * CHANGED_BYTES):
                chain.parted = count, last
                self._planned = count, copies
                return False
            last = number, place[1] + 1
            if number not in self._subscriptions:
                continue  # it ended since the first part of the copies was made
            if made is None:
                chain.add(number, count, None if has_session else self._why_without_session(number))
                continue
            if isinstance(made, ChangedCopy):
                has_its = made.changes.system_properties.get("sessionid", has_session or None) is not None
                try:
                    chain.records.append(record_of(write_copy(message, made.changes)))
                except (EvaluationFailed, EncodeError) as error:
                    # Of a section that is written anew every entry is read, also those that no action asked for.
                    made = action_failure(made.rule_name, error)
                else:
                    chain.size += len(chain.records[-1])
                    chain.made += len(made.changes.application_properties) // 2  # each is encoded
                    chain.copies.append((number, count))
                    chain.add(number, count, None if has_its else self._why_without_session(number))
                    continue
            if self._subscriptions[number].keeps_failed and number not in told:
                told.add(number)
                chain.add(number, count, (made.reason, made.description))
        return True

    def _why_without_session(self, number: int) -> tuple[str, str] | None:
        return NO_SESSION if self._subscriptions[number].core.settings.requires_session else None

    def _session_of(self, count: int) -> int:
        """The number of a message's session, less than 0: it has none."""
        found = self._core.state.messages.find(count)
        assert found is not None  # it is marked
        return found[0].rows[found[1] + M_SESSION]

    def _copy(self, counts: array[int], chain: _Chain, times: Times, trace: Trace | None = None) -> None:
        """Append the chain; all of it is visible, or nothing. trace: of what clients trace in it."""
        core = self._core
        front = [
            changed(chain.copies[at : at + RANGES_LIMIT]) for at in range(0, len(chain.copies), RANGES_LIMIT)
        ]  # fmt: skip
        made = _copied(chain.counts)
        marked = counts
        if chain.parted is not None:
            count, place = chain.parted
            made.insert(0, partly(count, self._state().places.get(count, FIRST_PLACE), place, len(made)))
            marked = counts + array("q", [count])
        behind = [*made, *self._dead_letters(chain), *core.encoded(core.ranged(SETTLED, counts))]
        run = chain_of(front, chain.records, behind) if front else chain_of(behind, ())
        core.append(run, times, partial(self._copied, marked, run, list(chain.counts), trace))

    def _dead_letters(self, chain: _Chain) -> list[bytes]:
        """Operations of subscriptions on copies that this chain makes: their counts follow those that are there."""
        records: list[bytes] = []
        for number, dead in chain.dead.items():
            core = self._subscriptions[number].core
            next_count = core.state.messages.next_count
            by_reason: dict[tuple[str, str], array[int]] = {}
            for place, why in dead:
                by_reason.setdefault(why, array("q")).append(next_count + place)
            operations: list[Operation] = []
            for (reason, description), its in by_reason.items():
                operations += core.ranged(MODIFIED, its, properties=dead_letter_properties(reason, description))
            its = array("q", [next_count + place for place, _ in dead])
            operations += core.ranged(DEAD_LETTERED, its, sub_queue=SubQueue.DEAD_LETTERS)
            records += core.encoded(operations)
        return records

    def _copied(
        self, counts: array[int], run: bytearray, numbers: list[int], trace: Trace | None, outcome: Appended | Refused
    ) -> None:
        self._is_under_way = False
        if trace is not None:
            trace.ended(STORE_OFFLINE.symbol if isinstance(outcome, Refused) else "")
        if isinstance(outcome, Refused):
            self._core.unmark(counts, outcome)
        else:
            self._state().apply_run(run, is_replay=False)
            if self._state().places:
                left = array("q", [count for count in counts if count in self._state().places])
                self._core.unlock(left, marks=SETTLING, change=0)  # one that is copied partly goes on
            for number in numbers:
                subscription = self._subscriptions.get(number)
                if subscription is not None:
                    subscription.core.wake()
        self._core.wake()

    def _not_read(self, counts: array[int], refused: Refused, times: Times) -> None:
        """Messages whose records are damaged keep their mark, and nobody gets them; the others are tried again.

        After a moment: a disk that refuses reads refuses the next one, too.
        """
        self._is_under_way = False
        self._core.retry_ms = times.monotonic_ms + RETRY_MS
        error, others = refused.error, array("q", counts)
        if isinstance(error, CorruptStore) and error.first_index is not None and error.resume_index is not None:
            for place, count in enumerate(counts):
                found = self._core.state.messages.find(count)
                if found is not None and error.first_index <= found[0].rows[found[1] + M_INDEX] < error.resume_index:
                    assert found[0].rows[found[1] + M_STATE] & SETTLING
                    others[place] = 0
        self._core.unmark(others, refused)
        self._core.wake()


def _copied(counts: Mapping[int, array[int]]) -> list[bytes]:
    """The records of COPIED; subscriptions that get the same messages stand in one."""
    by_counts: dict[bytes, list[int]] = {}
    for number, its in counts.items():
        by_counts.setdefault(its.tobytes(), []).append(number)
    records = []
    for numbers in by_counts.values():
        its = counts[numbers[0]]
        ranges = array("q", bytes(16 * len(its)))
        pairs = number_ranges(its, 0, len(its), ranges)
        for at in range(0, pairs, RANGES_LIMIT):
            records.append(copied(numbers, ranges[2 * at : 2 * min(at + RANGES_LIMIT, pairs)]))
    return records


def _many(copies: TopicCopies[int]) -> int:
    return len(copies.changed) + len(copies.plain) + len(copies.failed)


def _placed(copies: TopicCopies[int], first: Place) -> Iterator[tuple[Place, ChangedCopy | RuleFailure | None]]:
    """What there is from a place on, in the order of places; None: a plain copy.

    Of one subscription: copies that were changed, then the plain one, then dead letters.
    """
    plain = ((number, None) for number in copies.plain)
    before, made_before = 0, 0
    for number, made in sorted((*copies.changed, *plain, *copies.failed), key=itemgetter(0)):
        made_before = made_before + 1 if number == before else 0
        before = number
        if (number, made_before) >= first:
            yield (number, made_before), made
