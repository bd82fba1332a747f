"""A send over HTTP that waits for its broker's word, and what it is answered with. Of events and of messages.

201: stored, as durable as the entity's mode says. An error of the table: certainly nothing stored. Not known (the
broker went away, or gave no answer in time): 504, which never says that nothing was stored.
"""

from __future__ import annotations

import asyncio

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.fragment import MessagesEnqueued
from hubweir.broker.commands.partition import EventsAppended
from hubweir.broker.commands.process import Refusal
from hubweir.errors import TIMED_OUT, ServiceError
from hubweir.gateway.append_queue import DeliveryRange, Submission
from hubweir.gateway.http.exchange import Response, Room

# The service's own default for the query parameter `timeout`. The outcome comes long before, or is not known.
ANSWER_WAIT_S = 60.0
CREATED = Response(201)


class PendingSend:
    """A publication that waits for its broker's word (append_queue.Submitter); gives its room back then."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def submission(self, size_bytes: int) -> Submission:
        """The one delivery that this send is."""
        return Submission(self, DeliveryRange(0, 0), deliveries=1, size_bytes=size_bytes, settled=False)

    def answered(self, submission: Submission, answer: Answer) -> None:
        self._room.give_back()
        if not self._answer.done():  # nobody waits any more
            self._answer.set_result(answer)

    async def outcome(self, entity: str) -> Response:
        """The answer of the request. Raises ServiceError. entity: for texts."""
        unknown = f"The outcome of this send to '{entity}' is not known: it may be stored or not."
        try:
            async with asyncio.timeout(ANSWER_WAIT_S):
                answer = await self._answer
        except TimeoutError:
            raise ServiceError(TIMED_OUT, f"{unknown} There was no answer in {ANSWER_WAIT_S:.0f} s.") from None
        if isinstance(answer, EventsAppended | MessagesEnqueued):
            return CREATED
        if isinstance(answer, Refusal) and answer.known:
            raise answer.error
        raise ServiceError(TIMED_OUT, f"{unknown} {answer.text}" if isinstance(answer, Refusal) else unknown)
