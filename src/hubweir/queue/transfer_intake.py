"""Forwarding, at the destination: a fragment stores the messages of a transfer, unless it stored them before.

That is decided when they are visible, by the highest number of their source (transfers.py). A destination that has
heard of an attempt refuses earlier ones, which may be on their way still: so when it says that it does not have a
transfer, that stays true. Which attempts it heard of lives in memory, as what is on its way to a process ends with it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial

from hubweir.errors import SERVER_BUSY, ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_values import NumberRange, OnDone, Times
from hubweir.queue.operation import RECEIVED, Operation, encode_operation

# Stores a run of messages behind operations; see Fragment.
StoreRun = Callable[[bytearray, int, list[bytes], Times, OnDone[NumberRange]], None]


class TransferIntake:
    """Of one fragment."""

    def __init__(self, core: FragmentCore, store_run: StoreRun) -> None:
        self._core = core
        self._store_run = store_run
        self._heard: dict[bytes, int] = {}  # attempts, by source
        self._storing: dict[bytes, list[Callable[[Times], None]]] = {}  # by source: who waits for what is on its way

    def store(
        self,
        source: bytes,
        attempt: int,
        number: int,
        run: bytearray,
        firsts: array[int],
        ends_ms: array[int],
        times: Times,
        on_done: OnDone[bool],
    ) -> None:
        """See Fragment.store_transfer."""
        core = self._core
        if attempt < self._heard.get(source, 0):
            raise ServiceError(SERVER_BUSY, f"'{core.entity}' was offered this transfer anew: take it anew")
        self._heard[source] = attempt
        waiting = self._storing.get(source)
        if waiting is not None:
            waiting.append(partial(self._again, source, attempt, number, run, firsts, ends_ms, on_done))
        elif number <= core.state.transfers.received.get(source, 0):
            on_done(True)
        elif not firsts:
            on_done(False)
        else:
            operation = Operation(RECEIVED, number=number, name=source, firsts=firsts, ends_ms=ends_ms)
            self._storing[source] = []
            try:
                self._store_run(
                    run,
                    len(firsts),
                    [encode_operation(operation)],
                    times,
                    partial(self._stored, source, times, on_done),
                )
            except ServiceError:
                del self._storing[source]
                raise

    def _stored(
        self, source: bytes, times: Times, on_done: OnDone[bool], outcome: NumberRange | Refused | ServiceError
    ) -> None:
        waiting = self._storing.pop(source)
        on_done(True if isinstance(outcome, NumberRange) else outcome)
        for each in waiting:
            each(times)

    def _again(
        self,
        source: bytes,
        attempt: int,
        number: int,
        run: bytearray,
        firsts: array[int],
        ends_ms: array[int],
        on_done: OnDone[bool],
        times: Times,
    ) -> None:
        """What was on its way when this was asked is decided."""
        try:
            self.store(source, attempt, number, run, firsts, ends_ms, times, on_done)
        except ServiceError as error:
            on_done(error)
