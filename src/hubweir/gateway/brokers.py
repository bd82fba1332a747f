"""One client per broker: a call in the same process, a frame over a socket elsewhere. Both answer the same commands.

A client never raises for a command: what goes wrong is a Refusal. An answer may come before `submit` returns (the
broker had it at hand) or later on the loop; whoever submits must be ready for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Answer, Command, OnAnswer, Push
from hubweir.broker.commands.process import Refusal
from hubweir.errors import INTERNAL_ERROR, ServiceError

OnPush = Callable[[Push], None]


class BrokerClient(Protocol):
    """The way to one broker."""

    @property
    def is_up(self) -> bool:
        """Whether commands reach it. While they do not, each is refused as known (STORE_OFFLINE)."""

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        """Send a command; on_answer is called exactly once, with its answer or a Refusal.

        A Refusal that is not `known` leaves open whether the command took effect; it is never sent again.
        """

    def listen(self, on_push: OnPush) -> None:
        """Give whatever the broker pushes to on_push from now on."""


class InProcessBroker:
    """A broker of this process: commands are calls."""

    is_up = True

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.submit = broker.submit

    def listen(self, on_push: OnPush) -> None:
        self._broker.on_push = on_push


def error_of(answer: Answer) -> ServiceError:
    """Why a command was refused; the answer of another command is a fault of the service."""
    if isinstance(answer, Refusal):
        return answer.error
    return ServiceError(INTERNAL_ERROR, "The broker gave an answer that does not belong to the request.")


class Brokers:
    """The brokers by store: store i of a placement is the i-th client."""

    def __init__(self, clients: Sequence[BrokerClient], *, own: Sequence[BrokerClient] | None = None) -> None:
        """own: those that this process has, and no other one; None: all of them."""
        if not clients:
            raise ValueError("a gateway needs at least one broker")
        self._clients = tuple(clients)
        self._own = self._clients if own is None else tuple(own)

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[BrokerClient]:
        return iter(self._clients)

    @property
    def up(self) -> tuple[int, ...]:
        """The stores whose brokers are up; all of them when none is."""
        stores = tuple(index for index, client in enumerate(self._clients) if client.is_up)
        return stores or tuple(range(len(self._clients)))

    @property
    def away(self) -> tuple[int, ...]:
        """The stores whose brokers are not up."""
        return tuple(index for index, client in enumerate(self._clients) if not client.is_up)

    @property
    def all_up(self) -> bool:
        """Whether commands reach every broker."""
        return not self.away

    def is_own(self, broker: BrokerClient) -> bool:
        """Whether the broker is of this process: what one process alone must do of its logs, this one does."""
        return broker in self._own

    def of_store(self, store_index: int) -> BrokerClient:
        """The broker that owns this store."""
        return self._clients[store_index]
