"""Two fragments, each on a machine of its own, and what the forwarder does between them, step by step."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

from hubweir.errors import ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment import OpenTransfer, TransferEnd
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import QueueBench
from hubweir.testing.simulated_env import SimulatedEnv

SOURCE = b"source/0"


def forward_pair(source: FragmentSettings | None = None, destination: FragmentSettings | None = None) -> ForwardBench:
    """A bench of two."""
    return ForwardBench(
        QueueBench(source or FragmentSettings(), SimulatedEnv(1)),
        QueueBench(destination or FragmentSettings(), SimulatedEnv(2)),
    )


@dataclass
class ForwardBench:
    """source and destination; may be the same."""

    source: QueueBench
    destination: QueueBench
    name: bytes = SOURCE
    sub_queue: SubQueue = SubQueue.MAIN
    answers: list[Any] = field(default_factory=list)

    def run_for(self, ms: int) -> None:
        self.source.run_for(ms)
        if self.destination is not self.source:
            self.destination.run_for(ms)

    def take(self, to: bytes = b"there") -> OpenTransfer:
        """The open transfer."""
        answer = self.source.answer(lambda done: self.source.fragment.take_transfer(self.sub_queue, to, done), 200)
        assert isinstance(answer, OpenTransfer), answer
        return answer

    def store(self, transfer: OpenTransfer, *, asks: bool = False) -> bool | Refused | ServiceError:
        """Whether the destination has it; asks: without messages."""
        answers: list[Any] = []
        nothing = array("q")
        try:
            self.destination.fragment.store_transfer(
                self.name,
                transfer.attempt,
                transfer.number,
                bytearray() if asks else bytearray(transfer.run),
                nothing if asks else transfer.firsts,
                nothing if asks else transfer.ends_ms,
                self.destination.times(),
                answers.append,
            )
        except ServiceError as error:
            return error
        self.run_for(100)
        (answer,) = answers
        return answer  # type: ignore[no-any-return]

    def end(self, transfer: OpenTransfer, how: TransferEnd = TransferEnd.STORED) -> None:
        answer = self.source.answer(
            lambda done: self.source.fragment.end_transfer(
                self.sub_queue, transfer.number, transfer.attempt, how, done, reason="Why", description="because"
            )
        )
        assert answer is None, answer

    def forward(self) -> OpenTransfer:
        """One transfer from its beginning to its end."""
        transfer = self.take()
        assert self.store(transfer) is True
        self.end(transfer)
        return transfer
