"""Asks the fragments of an entity for one request to a management node; then the request is answered, or refused.

A request is about one fragment, about several at once, or about one after the other until it has enough. Its client may
say how long it waits: when that time ends first, it is told so, and what comes then is told to nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct

from hubweir.amqp.messaging.message import Message
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.process import Refusal
from hubweir.errors import TIMED_OUT, ServiceError
from hubweir.gateway.amqp.answer_deadline import AnswerDeadline, server_timeout_ms
from hubweir.gateway.amqp.request_node import RequestNode, text_property
from hubweir.gateway.brokers import error_of
from hubweir.gateway.fragments import FragmentPlace

A = TypeVar("A", bound=Answer)

PREFIX = "com.microsoft:"


class Question(Struct, frozen=True):
    """A command for a fragment."""

    place: FragmentPlace
    command: Command


class Inquiry(Generic[A]):
    """Of one request, of `size` bytes: one call of `ask` or `walk`. kind: of the answers that are no refusals.

    told: what a client is told instead of an answer of a broker.
    """

    def __init__(
        self,
        node: RequestNode,
        message: Message,
        size: int,
        kind: type[A],
        *,
        told: Callable[[Answer], Answer] | None = None,
    ) -> None:
        self._node = node
        self._message = message
        self._size = size
        self._kind = kind
        self._told = told
        self._limit_ms = server_timeout_ms(message)
        self._deadline = AnswerDeadline(self._limit_ms, self._time_over)

    def ask(
        self,
        questions: Sequence[Question],
        then: Callable[[list[A]], None],
        *,
        untold: Callable[[FragmentPlace, A], None] | None = None,
    ) -> None:
        """Ask all at once; then, with all answers in order, answer the request, or raise. A refusal is the request's.
        Where one fragment does not know the outcome, nobody knows that of the request.

        untold: what to do with an answer that the client does not hear of.
        """
        answers: dict[int, Answer] = {}

        def came(at: int, answer: Answer) -> None:
            answers[at] = answer if self._told is None else self._told(answer)
            if len(answers) < len(questions):
                return
            told = [answers[at] for at in range(len(questions))]
            found = [each for each in told if isinstance(each, self._kind)]
            refused = [each for each in told if not isinstance(each, self._kind)]
            is_told = self._deadline.answered()
            if is_told and not refused:
                self._end(partial(then, found))
                return
            for question, each in zip(questions, told, strict=True):
                if untold is not None and isinstance(each, self._kind):
                    untold(question.place, each)
            if is_told:
                self._refuse(self._why_not(refused))

        for at, question in enumerate(questions):
            question.place.broker.submit(question.command, partial(came, at))
        self._deadline.begin(self._node.host.env)

    def walk(
        self,
        places: Iterable[FragmentPlace],
        next_command: Callable[[FragmentPlace], Command | None],
        take: Callable[[FragmentPlace, A], None],
        then: Callable[[], None],
    ) -> None:
        """Ask one place after the other until next_command has none; take each answer; then, behind the last, as above.
        The next place is asked for behind the answer of the one before.

        A fragment that is away is passed over, and what the others have is told; when all are, that is the refusal.
        """
        left, away, taken = iter(places), list[ServiceError](), 0

        def step() -> None:
            for place in left:
                command = next_command(place)
                if command is None:
                    break
                place.broker.submit(command, partial(came, place))
                return
            end(None if taken or not away else away[0])

        def came(place: FragmentPlace, answer: Answer) -> None:
            nonlocal taken
            if isinstance(answer, self._kind):
                taken += 1
                take(place, answer)
                step()
                return
            error = error_of(answer)
            away.append(error)
            if error.condition.retriable:
                step()
            else:
                end(error)

        def end(error: ServiceError | None) -> None:
            if not self._deadline.answered():
                return
            if error is None:
                self._end(then)
            else:
                self._refuse(error)

        step()
        self._deadline.begin(self._node.host.env)

    def _end(self, then: Callable[[], None]) -> None:
        try:
            then()
        except ServiceError as refusal:
            self._refuse(refusal)

    def _refuse(self, refusal: ServiceError) -> None:
        self._node.refuse(self._message, self._size, refusal, entity=self._node.entity)

    def _why_not(self, refused: Sequence[Answer]) -> ServiceError:
        unknown = next((each for each in refused if isinstance(each, Refusal) and not each.known), None)
        if unknown is None:
            return error_of(refused[0])
        return ServiceError(TIMED_OUT, f"The outcome of {self._operation} is not known: {unknown.text}")

    def _time_over(self) -> None:
        text = (
            f"{self._operation} was not answered within {self._limit_ms} ms, as its server-timeout says; whether it "
            "takes effect is not known. Look, then ask again."
        )
        self._refuse(ServiceError(TIMED_OUT, text))

    @property
    def _operation(self) -> str:
        """What was asked of which entity, in words."""
        operation = (text_property(self._message, "operation") or "").removeprefix(PREFIX)
        return f"{operation} at '{self._node.entity}'"
