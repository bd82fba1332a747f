"""$cbs: tokens are put here, and become claims of this connection. (Claims-based security)

A token is judged by its content: what begins as a shared access signature is one, whatever type it is declared as.
The rights of its rule are recorded for the audience that the request names, until the token expires. What is wrong
with a token is told in the words that clients know; whether an entity exists is told only when the token is good.
delete-token takes one back; whether there was one makes no difference to its answer.

A token always counts at once. Azure's clients for Java hear of one that replaces another RENEWAL_ANSWER_MS later: they
renew on a timer's thread, each link for itself, and when the answer comes before that thread has finished asking, as it
does over a loopback, the client interrupts the thread, its connection breaks, and its readers end without an error. A
further link of theirs waits as long; so it would over a network.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.errors import ARGUMENT_ERROR, NOT_FOUND, NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.amqp.node import NodeHost
from hubweir.gateway.amqp.request_node import RequestNode, text_property
from hubweir.gateway.refusals import What
from hubweir.throughput_unit.token_bucket import TokenBucket

PUT_TOKEN, DELETE_TOKEN = "put-token", "delete-token"
ACCEPTED = 202
# Clients that are built on azure-core-amqp (2.11.3), by the product that their open names.
INTERRUPT_THEMSELVES = ("azure-messaging-eventhubs", "azure-messaging-servicebus")
RENEWAL_ANSWER_MS = 100


class CbsNode(RequestNode):
    """The one sender link on $cbs of a connection."""

    def __init__(self, host: NodeHost, link: ReceiverLink) -> None:
        super().__init__(host, link)
        self._waiting: deque[tuple[Message, int]] = deque()
        settings = host.link_settings
        self._rate = PutTokenRate(settings.put_token_burst, settings.put_token_per_second, host.env.monotonic_ms())
        self._is_due = False

    def request(self, message: Message, size: int) -> None:
        self._waiting.append((message, size))
        if not self._is_due:
            self._work()

    def _work(self) -> None:
        """Do what waits, as fast as the rate allows, in the order in which it came."""
        self._is_due = False
        while self._waiting and not self.host.is_over:
            delay_ms = self._rate.delay_ms(self.host.env.monotonic_ms())
            if delay_ms:
                self._is_due = True
                self.host.env.call_later(delay_ms, self._work)
                return
            message, size = self._waiting.popleft()
            try:
                replaces = self._put(message)
            except ServiceError as refusal:
                self._refuse(message, size, refusal)
            else:
                accept = partial(self.answer, message, size, ACCEPTED, "Accepted")
                if replaces and self.host.endpoint.remote_product in INTERRUPT_THEMSELVES:
                    self.host.env.call_later(RENEWAL_ANSWER_MS, accept)
                else:
                    accept()

    def _refuse(self, message: Message, size: int, refusal: ServiceError) -> None:
        """Answer with a refusal. An entity that is not there is told to good tokens alone: it is no refused token."""
        if refusal.condition is NOT_FOUND:
            asked = self.host.gateway.authorization.scope_of(text_property(message, "name") or "")
            self.refuse(message, size, refusal, entity="/".join(asked.segments), what=What.ENTITY)
        else:
            self.host.gateway.counters["gateway.tokens_refused"] += 1
            self.refuse(message, size, refusal, what=What.TOKEN)

    def _put(self, message: Message) -> bool:
        """Do what a request asks; return whether a token replaced another one. ServiceError: nothing was done."""
        operation = text_property(message, "operation")
        audience = text_property(message, "name")
        if operation not in (PUT_TOKEN, DELETE_TOKEN):
            text = f"$cbs knows the operations {PUT_TOKEN} and {DELETE_TOKEN}, not {str(operation)[:64]!r}."
            raise ServiceError(NOT_IMPLEMENTED, text)
        if not audience:
            raise ServiceError(ARGUMENT_ERROR, "The request has no property 'name' with the address to authorise.")
        if operation == DELETE_TOKEN:
            self.host.claims.delete(audience)
            return False
        body = message.body
        if not isinstance(body, ValueBody) or not isinstance(body.value, str):
            raise ServiceError(ARGUMENT_ERROR, "The body of put-token must be one AMQP string, the token.")
        return self.host.claims.put(body.value, audience)


class PutTokenRate:
    """Limits how fast one connection may put tokens: a burst, then so many a second. Late ones wait, none is refused.

    One client puts one token for each partition that it reads, so the burst is generous; checking a signature costs
    processor time, so the rest is slow. Times are milliseconds of the monotonic clock.
    """

    def __init__(self, burst: int, per_second: int, now_ms: int) -> None:
        burst_ms = -(-burst * 1_000 // per_second)
        self._bucket = TokenBucket(per_second, now_ms=now_ms, burst_ms=burst_ms)

    def delay_ms(self, now_ms: int) -> int:
        """Count a token and return 0, or count none and return how long to wait before asking again."""
        wait_ms = self._bucket.wait_ms(1, now_ms)
        if wait_ms == 0:
            self._bucket.take(1)
        return wait_ms
