"""Transactions of a client of queues: what is sent and settled in one is done at its commit together, or not at all.

    async with client.transaction() as transaction:
        await sender.send(b"answer", transaction=transaction)
        await receiver.complete(request, transaction=transaction)

Behind the block it is committed; when the block raises, it is rolled back. A transaction is of one connection: when
that ends, so does the transaction, and nothing of it is done. A call in it is tried once; one that fails spoils it, so
that a commit never does a part of what was asked for. (docs/transaction.md)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

from hubweir.amqp.messaging.outcome import Outcome, TransactionalState
from hubweir.amqp.transport.delivery import IdRange
from hubweir.client.connection import Connection
from hubweir.client.control_link import AnswerLost, ControlLink
from hubweir.client.lasting_connection import LastingConnection
from hubweir.client.message_run import SettlingLink
from hubweir.errors import ILLEGAL_STATE, TRANSACTION_ROLLED_BACK, ServiceError

T = TypeVar("T")


class CommitUnknown(ServiceError):
    """A commit went out and no answer came: all of the transaction was done, or nothing."""

    def __init__(self, cause: ServiceError) -> None:
        super().__init__(cause.condition, f"{cause.text}; whether the transaction was committed is not known")


@dataclass(frozen=True, slots=True)
class _Open:
    """A transaction of the service: the connection that it is of, the link that ends it, and its id."""

    connection: Connection
    control: ControlLink
    txn_id: bytes


class ControlLinks:
    """The control link of a client, on whatever connection there is."""

    def __init__(self, connection: LastingConnection) -> None:
        self._connection = connection
        self._control: tuple[Connection, ControlLink] | None = None

    async def declare(self) -> _Open:
        """A new transaction. Tried again as the RetryPolicy says."""

        async def step(connection: Connection) -> _Open:
            control = await self._linked(connection)
            return _Open(connection, control, await control.declare())

        return await self._connection.retried(step)

    async def _linked(self, connection: Connection) -> ControlLink:
        """The link of now, attached if it is not."""
        if self._control is not None and self._control[0] is connection and self._control[1].error is None:
            control = self._control[1]
        else:
            control = ControlLink(connection)
            self._control = connection, control
        await control.wait_attached(connection.timeout_s)
        return control


class QueueTransaction:
    """One transaction, open inside its block."""

    def __init__(self, controls: ControlLinks) -> None:
        self._controls = controls
        self._open: _Open | None = None
        self._spoilt: str | None = None
        self._settled: list[tuple[SettlingLink, Sequence[IdRange[None]]]] = []

    async def __aenter__(self) -> QueueTransaction:
        if self._open is not None:
            raise ServiceError(ILLEGAL_STATE, "the transaction is open already: ask the client for another one")
        self._open = await self._controls.declare()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, or roll back where the block raised.

        ServiceError TRANSACTION_ROLLED_BACK: nothing of it was done, and why; TRANSACTION_TIMED_OUT; CommitUnknown.
        """
        assert self._open is not None
        ended, self._open = self._open, None
        is_committed = False
        try:
            if error is not None or self._spoilt is not None:
                await _roll_back(ended)
            else:
                await _commit(ended)
                is_committed = True
        finally:
            settled, self._settled = self._settled, []
            if not is_committed:
                for link, spans in settled:
                    link.gave_up(spans)
        if error is None and self._spoilt is not None:
            raise ServiceError(TRANSACTION_ROLLED_BACK, f"the transaction was rolled back: {self._spoilt}")

    async def do(self, step: Callable[[Connection, TransactionalState], Awaitable[T]]) -> T:
        """Do something in it: on its connection, once, under the state that says so. What fails spoils it.

        ServiceError ILLEGAL_STATE outside its block.
        """
        if self._open is None:
            raise ServiceError(ILLEGAL_STATE, "the transaction is not open: use it inside its block")
        connection = self._open.connection
        try:
            if connection.error is not None:
                text = f"the connection of the transaction has ended: {connection.error.text}"
                raise ServiceError(TRANSACTION_ROLLED_BACK, text)
            return await step(connection, TransactionalState(txn_id=self._open.txn_id))
        except BaseException as error:
            self._spoilt = self._spoilt or str(error) or type(error).__name__
            raise

    async def settle(self, link: SettlingLink, spans: Sequence[IdRange[None]], outcome: Outcome) -> None:
        """Settle deliveries of a link in it."""

        async def step(connection: Connection, state: TransactionalState) -> None:
            self._settled.append((link, spans))
            await link.settle(spans, outcome, txn_id=state.txn_id)

        await self.do(step)


async def _commit(transaction: _Open) -> None:
    try:
        await transaction.control.discharge(transaction.txn_id, fail=False)
    except AnswerLost as lost:
        raise CommitUnknown(lost) from None
    except ServiceError as error:
        if transaction.control.error is not error:
            raise
        # The link ended before anything was asked of it, and the transaction with it.
        raise ServiceError(TRANSACTION_ROLLED_BACK, f"the transaction was rolled back: {error.text}") from error


async def _roll_back(transaction: _Open) -> None:
    """Where that cannot be told, the end of the link says it, or the service's own limit of time."""
    with suppress(ServiceError):
        await transaction.control.discharge(transaction.txn_id, fail=True)
