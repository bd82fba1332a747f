"""Defects that histories of more than one kind must find, each a function that plants it: else their silence means
nothing. Those of one kind of history alone stand in its test.
"""

from __future__ import annotations

from array import array
from typing import Any

import msgspec
import pytest

from hubweir.broker.capture import intent as capture_intent
from hubweir.broker.capture.runner import CaptureRunner
from hubweir.env import SyncFailed
from hubweir.kernels.contract import W_DURABLE_UPTO
from hubweir.messaging_store.disk import batch_scan
from hubweir.queue.duplicate_window import DuplicateWindow
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_state import FragmentState
from hubweir.queue.message_session import MessageSession
from hubweir.queue.operation import REJECTED, SESSION_STATE, SETTLED, Operation
from hubweir.testing.memory_files import MemoryFile

# Of a store


def accept_before_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryFile, "write_and_sync", MemoryFile.write)


def ignore_failed_syncs(patch: pytest.MonkeyPatch) -> None:
    sync = MemoryFile.sync

    def deaf(self: MemoryFile) -> None:
        try:
            sync(self)
        except SyncFailed:
            return

    patch.setattr(MemoryFile, "sync", deaf)


def retry_failed_syncs(patch: pytest.MonkeyPatch) -> None:
    sync = MemoryFile.sync

    def stubborn(self: MemoryFile) -> None:
        try:
            sync(self)
        except SyncFailed:
            sync(self)

    patch.setattr(MemoryFile, "sync", stubborn)


def cut_at_the_first_damage(patch: pytest.MonkeyPatch) -> None:
    """What a segment says to be durable behind the damage is not heard."""
    follow = batch_scan.follow_batches

    def deaf(data: Any, nonce: Any, walk: Any, entries: Any, table: Any) -> Any:
        vouched = walk[W_DURABLE_UPTO]
        found = follow(data, nonce, walk, entries, table)
        walk[W_DURABLE_UPTO] = vouched
        return found

    patch.setattr(batch_scan, "follow_batches", deaf)


# Of a queue


def answer_settlements_before_they_are_durable(patch: pytest.MonkeyPatch) -> None:
    gather = FragmentCore.gather

    def early(self: FragmentCore, operations: list[Operation], on_done: Any = None) -> None:
        if operations and operations[-1].code in (SETTLED, REJECTED) and on_done is not None:
            gather(self, operations)
            on_done(None)
        else:
            gather(self, operations, on_done)

    patch.setattr(FragmentCore, "gather", early)


def give_a_held_session(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MessageSession, "is_free", property(lambda self: not self.is_ending))


def forget_the_states_of_sessions(patch: pytest.MonkeyPatch) -> None:
    apply = FragmentState.apply

    def deaf(self: FragmentState, operation: Operation, *, is_replay: bool) -> Any:
        if operation.code == SESSION_STATE and is_replay:
            return array("q")
        return apply(self, operation, is_replay=is_replay)

    patch.setattr(FragmentState, "apply", deaf)


def forget_some_ids(patch: pytest.MonkeyPatch) -> None:
    duplicates_in = DuplicateWindow.duplicates_in

    def forgetful(self: DuplicateWindow, data: Any, fields: Any, **named: Any) -> list[int]:
        found = duplicates_in(self, data, fields, **named)
        self._newest = {each: time_ms for each, time_ms in self._newest.items() if each % 4}
        return found

    patch.setattr(DuplicateWindow, "duplicates_in", forgetful)


# Of capture


def move_the_mark_before_the_file_is_there(patch: pytest.MonkeyPatch) -> None:
    """The mark is moved where the intent should be written: an end in between loses the window."""
    note = capture_intent.note_mark

    def moved_at_once(log: Any, mark: Any, **given: Any) -> None:
        intent = mark.intent
        if intent is not None:
            mark = msgspec.structs.replace(mark, intent=None, next_index=intent.end, next_offset=intent.end_offset)
        note(log, mark, **given)

    patch.setattr(capture_intent, "note_mark", moved_at_once)


def forget_the_intent(patch: pytest.MonkeyPatch) -> None:
    """A file that was finished before the mark moved is made again under another name."""
    began = CaptureRunner.start

    def forget(self: CaptureRunner) -> None:
        self._capture.mark = msgspec.structs.replace(self.mark, intent=None)
        began(self)

    patch.setattr(CaptureRunner, "start", forget)
