"""Answers of one process with several messaging stores to what others ask their supervisor: how it is, and marks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from hubweir.broker.commands.broker_process import AskProcesses, MarkStore, ProcessesTold, ProcessTold
from hubweir.broker.commands.command import Answer, Command, Push
from hubweir.broker.commands.process import Refusal
from hubweir.errors import NOT_ALLOWED
from hubweir.service.served_store import ServedStore, mark_store


class StoresDoor:
    """A client of itself (gateway/brokers.py). connections: how many there are."""

    is_up = True

    def __init__(self, stores: Sequence[ServedStore], connections: Callable[[], int]) -> None:
        self._stores = {store.index: store for store in stores}
        self._connections = connections

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """Answer at once; a store that is to go away, when its folder is free."""
        match command:
            case AskProcesses():
                on_answer(ProcessesTold((self._told(),)))
            case MarkStore():
                mark_store(self._stores, command, on_answer)
            case _:
                text = "This service is one process, which no command ends: `hubweir serve --brokers N` has several."
                on_answer(Refusal(NOT_ALLOWED, text))

    def listen(self, on_push: Callable[[Push], None]) -> None:
        """Nothing is pushed."""

    def _told(self) -> ProcessTold:
        return ProcessTold(
            index=0,
            pid=os.getpid(),
            stores=tuple(self._stores),
            state="serves",
            connections=self._connections(),
            starts=1,
            away=tuple(index for index, store in self._stores.items() if not store.is_up),
        )
