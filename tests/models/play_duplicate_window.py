"""Plays walks of the duplicate window's model to a fragment: each send, each answer, and behind each step a peek."""

from __future__ import annotations

from hubweir.errors import RESOURCE_LIMIT, ServiceError
from hubweir.queue.fragment import NumberRange
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.window_clock import SLACK_MS
from tests.models.duplicate_window import DuplicateWindow, State
from tests.models.explorer import Action
from tests.models.played_fragment import Answer, PlayedFragment

UNIT_MS = 10_000


class WindowPlayer:
    """See the module's text. One for each walk. Who plays sets GENERATION_IDS to what the model has."""

    def __init__(self, model: DuplicateWindow) -> None:
        self._model = model
        self._played = PlayedFragment(FragmentSettings(duplicate_window_ms=model.window * UNIT_MS - SLACK_MS))
        self._begin()
        self._sends: list[Answer] = []
        self._offset_ms = 0

    def _begin(self) -> None:
        self._played.fragment.core.state.duplicates.limit = self._model.room

    def play(self, action: Action, before: State, after: State) -> None:
        """See Player."""
        name, *arguments = action
        getattr(self, f"_{name}")(*arguments, before)
        answered = [each for each in self._sends if each.is_there]
        for answer in answered:
            is_taken = isinstance(answer.value, NumberRange)
            assert is_taken == (name != "sync_fails"), f"a send is answered with {answer.value}"
        self._sends = [each for each in self._sends if not each.is_there]
        assert len(self._sends) == len(after.tail), f"{len(self._sends)} senders wait, {len(after.tail)} in the model"

    def compare(self, state: State) -> None:
        """See Player."""
        played = self._played
        waiting, ids = self._model.view(state)
        shown = sorted(int(got.body) for got in played.peek())
        assert shown == waiting, f"a peek shows messages of the ids {shown}, the model of {waiting}"
        remembered = len(played.fragment.core.state.duplicates)
        assert remembered == ids, f"{remembered} ids are remembered, {ids} in the model"
        appends = played.log.in_flight
        assert appends == len(state.tail), f"{appends} appends are in flight, {len(state.tail)} in the model"

    # Actions, by their names

    def _send(self, number: int, result: str, before: State) -> None:
        try:
            self._sends.append(self._played.send(str(number), message_id=str(number)))
        except ServiceError as error:
            assert error.condition is RESOURCE_LIMIT and result == "no room", f"a send is refused: {error}"
        else:
            assert result == "waits", "a send is taken that there is no room for"

    def _consume(self, before: State) -> None:
        played = self._played
        receiver = played.fragment.open_receiver(SubQueue.MAIN, ReceiveMode.RECEIVE_AND_DELETE)
        answer = played.ask(
            lambda answer: played.fragment.receive(receiver, max_count=100, max_bytes=1 << 20, on_done=answer)
        )
        played.sync()
        assert len(answer.got) == sum(before.waiting), "other messages were consumed"

    def _save_snapshot(self, before: State) -> None:
        self._played.fragment.upkeep.snapshot_records = 1
        self._played.fragment.maintain(self._played.times())

    def _time_passes(self, before: State) -> None:
        self._played.stamp_ms += UNIT_MS
        self._played.monotonic_ms += UNIT_MS

    def _clock_jumps(self, where: str, before: State) -> None:
        self._set_clock(self._model.jump * UNIT_MS * (1 if where == "ahead" else -1))

    def _clock_is_right(self, before: State) -> None:
        self._set_clock(0)

    def _set_clock(self, offset_ms: int) -> None:
        self._played.stamp_ms += offset_ms - self._offset_ms
        self._offset_ms = offset_ms

    def _sync(self, before: State) -> None:
        self._played.sync()

    def _sync_fails(self, before: State) -> None:
        self._played.log.fail()
        self._played.turns()

    def _kill(self, units: int, before: State) -> None:
        self._crash(len(before.tail), units)

    def _power_cut(self, kept: int, units: int, before: State) -> None:
        self._crash(kept, units)

    def _crash(self, kept: int, units: int) -> None:
        self._played.stamp_ms += units * UNIT_MS
        self._played.crash(kept)
        self._begin()
        self._sends = []
