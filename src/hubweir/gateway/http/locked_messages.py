"""…/messages/{message}/{token}: a lock is given up, renewed, or its message completed. 200, or 404: the lock is lost.

The token alone decides: whoever holds it, by whatever door it was given out. What stands in front of it, the sequence
number of Location or a message id, is not looked at.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.fragment import LocksRenewed, MessagesSettled, RenewLocks, SettleMessages
from hubweir.broker.commands.process import Refusal
from hubweir.errors import TIMED_OUT, ServiceError
from hubweir.gateway.brokers import error_of
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.http.exchange import Request, Response, answer_of
from hubweir.gateway.http.message_source import gone_where_absent, source_of
from hubweir.gateway.http.receive_messages import BODY_BYTES
from hubweir.gateway.http.route import Match
from hubweir.queue.settle_outcome import LOCK_LOST, SettleOutcome, lost_error

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

A = TypeVar("A", bound=Answer)


async def unlock(gateway: Gateway, request: Request, match: Match) -> Response:
    """The message is active again; this delivery counts."""
    return await _settle(gateway, request, match, SettleOutcome.ABANDON)


async def complete(gateway: Gateway, request: Request, match: Match) -> Response:
    """The message is gone."""
    return await _settle(gateway, request, match, SettleOutcome.COMPLETE)


async def renew(gateway: Gateway, request: Request, match: Match) -> Response:
    """The message is locked for the queue's lock duration from now on."""
    with gone_where_absent():
        place, token = await _lock_of(gateway, request, match)
        renewed = await answer_of(partial(_ask, place, RenewLocks(place.log_id, token), LocksRenewed))
    if not all(array("q", renewed.until_ms)):
        raise lost_error(LOCK_LOST)
    return Response(200)


async def _settle(gateway: Gateway, request: Request, match: Match, outcome: SettleOutcome) -> Response:
    with gone_where_absent():
        place, token = await _lock_of(gateway, request, match)
        settled = await answer_of(partial(_ask, place, SettleMessages(place.log_id, token, outcome), MessagesSettled))
    if any(settled.codes):
        raise lost_error(settled.codes[0])
    return Response(200)


async def _lock_of(gateway: Gateway, request: Request, match: Match) -> tuple[FragmentPlace, bytes]:
    """Where the lock is, and its token. Raises ServiceError; MESSAGE_LOCK_LOST for what cannot be a token."""
    await request.body(BODY_BYTES, "The body of a request on a lock")
    fragments = source_of(gateway, match.entity).fragments
    try:
        token = UUID(match.names["token"]).bytes
    except ValueError:
        raise lost_error(LOCK_LOST) from None
    place = fragments.of_token(token)
    if place is None:
        raise lost_error(LOCK_LOST)
    return place, token


def _ask(place: FragmentPlace, command: Command, kind: type[A], on_done: Callable[[A | ServiceError], None]) -> None:
    """Have the broker run a command. Where it cannot say whether it did, the outcome is not known."""

    def answered(answer: Answer) -> None:
        if isinstance(answer, kind):
            on_done(answer)
        elif isinstance(answer, Refusal) and not answer.known:
            text = f"The outcome of this request on a lock at '{place.entity}' is not known: {answer.text}"
            on_done(ServiceError(TIMED_OUT, text))
        else:
            on_done(error_of(answer))

    place.broker.submit(command, answered)
