"""What a log has promised to everybody who was answered or who read, and the check that it holds. See log_world.py.

Kept is what must be there after the next start. In relaxed mode that of the newest `RELAXED_WINDOW_MS` may be gone when
the power is cut (promise P1), and only then: a kill loses nothing. What a start showed is durable, in every mode.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hubweir.messaging_store.log import Bounds

LEAST_JUMP = 1_000_000  # numbers are skipped by more than this, or not at all
# 50 ms until a sync is asked for; one that is under way ends first, then its own begins: in the simulation a call
# begins within 20 ms, stops a few times for up to 20 ms, and is answered within 20.
RELAXED_WINDOW_MS = 50 + 50 + 2 * (20 + 100 + 20)


class Violation(BaseException):
    """A promise does not hold. No Exception: a log contains those that are raised in its callbacks."""


@dataclass(slots=True)
class Sent:
    """One run that was appended: its messages, and how it ended. is_durable: the mode was durable all the while."""

    messages: list[bytes]
    first_index: int
    state: str = "unknown"  # until it is "accepted" or "refused"
    is_durable: bool = True


@dataclass(slots=True)
class Record:
    """One record as it was read."""

    index: int
    offset: int
    time_ms: int
    message: bytes


@dataclass(slots=True)
class Kept:
    """A message that must be there at an index. known_ms: since when, in this process."""

    content: bytes
    known_ms: int
    is_durable: bool


@dataclass(slots=True)
class Model:
    """What was promised. Times are of the clock that tells durations, in the process that runs."""

    sent: list[Sent] = field(default_factory=list)
    seen: dict[int, bytes] = field(default_factory=dict)  # index -> the bytes that anyone saw there
    records: dict[int, Kept] = field(default_factory=dict)
    notes: dict[bytes, int] = field(default_factory=dict)  # key -> the newest number that was answered
    at_risk: set[int] = field(default_factory=set)  # what a power cut may take until the next start
    was_cut: bool = False

    def saw(self, record: Record, now_ms: int, *, is_durable: bool) -> None:
        """A reader, or a sender's outcome, learned what an index names."""
        if self.seen.setdefault(record.index, record.message) != record.message:
            raise Violation(f"P4: index {record.index} names other bytes than before")
        kept = self.records.setdefault(record.index, Kept(record.message, now_ms, is_durable))
        kept.is_durable = kept.is_durable or is_durable

    def all_durable(self) -> None:
        """A sync has covered whatever was known before."""
        for kept in self.records.values():
            kept.is_durable = True

    def ended(self, now_ms: int, *, power_cut: bool, is_sick: bool) -> None:
        """The process is over. is_sick: calls failed in it, so the window may be open for longer than promised."""
        for index, kept in self.records.items():
            if not kept.is_durable and (is_sick or now_ms - kept.known_ms <= RELAXED_WINDOW_MS):
                self.at_risk.add(index)
        self.was_cut = self.was_cut or power_cut

    def started(self, records: list[Record], notes: dict[bytes, int], first_index: int) -> None:
        """Hold everything that the log shows at a start against what was promised. notes: key -> its number."""
        _check_order(records)
        may_go = self.at_risk if self.was_cut else set()
        by_index = {record.index: record.message for record in records}
        self._check_records(by_index, first_index, may_go)
        self._check_notes(notes)
        self._check_sent({record.message for record in records}, first_index)
        for record in records:
            self.saw(record, 0, is_durable=True)
        for kept in self.records.values():
            kept.is_durable = True
        self.at_risk.clear()
        self.was_cut = False

    def _check_records(self, by_index: dict[int, bytes], first_index: int, may_go: set[int]) -> None:
        for index, kept in list(self.records.items()):
            if index < first_index or by_index.get(index) == kept.content:
                continue
            if index in by_index:
                raise Violation(f"P1: accepted index {index} is changed")
            if index not in may_go:
                raise Violation(f"P1: accepted index {index} is lost, and nothing allows it")
            del self.records[index]

    def _check_notes(self, found: dict[bytes, int]) -> None:
        """Durable in every mode, whatever is trimmed."""
        for key, number in self.notes.items():
            if found.get(key, -1) < number:
                raise Violation(f"P11: {number} was noted under {key!r}, and {found.get(key)} is there")

    def _check_sent(self, present: set[bytes], first_index: int) -> None:
        for sent in self.sent:
            here = sum(message in present for message in sent.messages)
            if here and sent.state == "refused":
                raise Violation(f"P1: a refused run is stored at {sent.first_index}")
            if 0 < here < len(sent.messages) and sent.first_index >= first_index:
                raise Violation(f"P2: {here} of {len(sent.messages)} messages of a run are stored")


def _check_order(records: list[Record]) -> None:
    """P3: dense numbers but for the skipped ones; offsets rise, times do not fall."""
    for previous, record in zip(records, records[1:], strict=False):
        step = record.index - previous.index
        if step != 1 and step < LEAST_JUMP:
            raise Violation(f"P3: index {record.index} follows {previous.index}")
        if record.offset <= previous.offset or record.time_ms < previous.time_ms:
            raise Violation(f"P3: offset or time of {record.index} go back")


def check_last(bounds: Bounds, records: list[Record]) -> None:
    """The last index that the log names is the last record's, whatever numbers were skipped behind it."""
    if records and bounds.last_index != records[-1].index:
        raise Violation(f"the log names {bounds.last_index} as its last index; the last record has {records[-1].index}")
    if not records and bounds.last_index >= bounds.first_index:
        raise Violation(f"the log names {bounds.last_index} as its last index, and holds nothing")
