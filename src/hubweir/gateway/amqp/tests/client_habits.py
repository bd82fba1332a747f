"""What the official clients do over hours of one connection, as far as a service sees it, and a peer that does it.

The numbers are those of the clients' sources and of the frames that they write. A peer lives in virtual time and looks
around every STEP_MS, as an application does that polls. As the Python client does, it waits without end once a link of
$cbs or $management is gone that it did not end itself.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from hubweir.amqp.endpoint import EndpointSettings
from hubweir.amqp.messaging.message import Message, Properties, ValueBody, decode_message, encode_message
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import Closed, LinkDetached, LinkRefused, Settled
from hubweir.amqp.transport.frame import EMPTY_FRAME
from hubweir.amqp.types.values import Timestamp
from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.tests.world import HOST, KEY, ROOT, Peer, World, event, status_of
from hubweir.limits import ConnectionLimits
from hubweir.testing.endpoint_pair import Delivered

STEP_MS = 2_000
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
ANSWER_MS = 15 * SECOND  # clients wait for a minute; nothing here may take long
BUSY_MS, LOOK_MS = 20 * SECOND, 15 * MINUTE
CBS, MANAGEMENT = "$cbs", "$management"


@dataclass(frozen=True, slots=True)
class Habits:
    """Of one client. Times are milliseconds.

    idle_timeout_ms: what its open says; 0: nothing. heartbeat_ms: after so long without a frame it writes an empty one.
    token_ms, renew_ms: how long its tokens hold, and when it puts the next one; 0: it proves its rights by SASL PLAIN.
    keeps_cbs: one pair of $cbs links for the connection's life; else one a token, in a session that it then ends.
    shares_session: all links stand in one session; else each link or pair has its own. grants_one: it grants credit
    for one answer just before each request. audiences: one token each, below the hub.
    """

    idle_timeout_ms: int
    heartbeat_ms: int
    token_ms: int
    renew_ms: int
    keeps_cbs: bool = True
    shares_session: bool = False
    grants_one: bool = False
    audiences: tuple[str, ...] = ("", "/consumergroups/$default")


# Half of the 240 s that the service advertises is when most of them write an empty frame.
HABITS = {
    "azure-eventhub, Python": Habits(0, 120 * SECOND, HOUR, 54 * MINUTE, shares_session=True),
    "azure-eventhub, Python, tokens of 7 min": Habits(0, 120 * SECOND, 7 * MINUTE, 378 * SECOND, shares_session=True),
    "@azure/event-hubs, JavaScript": Habits(
        60 * SECOND,
        120 * SECOND,
        HOUR,
        45 * MINUTE,
        audiences=("", "/Partitions/0", "/ConsumerGroups/$Default/Partitions/0", "/$management"),
    ),
    "azure-messaging-eventhubs, Java": Habits(60 * SECOND, 120 * SECOND, 20 * MINUTE, 18 * MINUTE, grants_one=True),
    "azeventhubs, Go": Habits(30 * SECOND, 120 * SECOND, 2 * HOUR, 110 * MINUTE, keeps_cbs=False),
    "azeventhubs, Go, tokens of 10 min": Habits(30 * SECOND, 120 * SECOND, 10 * MINUTE, 2 * MINUTE, keeps_cbs=False),
    "Azure.Messaging.EventHubs, .NET": Habits(60 * SECOND, 60 * SECOND, 30 * MINUTE, 25 * MINUTE),
    "Qpid Proton": Habits(0, 120 * SECOND, 0, 0, shares_session=True),
    "rhea": Habits(0, 120 * SECOND, 0, 0, shares_session=True),
}


@dataclass(slots=True)
class RequestPair:
    """A pair of links to $cbs or $management. asked_at_ms: when the request went out that has no answer yet."""

    session: Any
    sender: Any
    receiver: Any
    asked_at_ms: int | None = None


@dataclass(slots=True)
class Life:
    """What happened to a peer. troubles: what may not; silence_ms: the longest time without a byte of the service."""

    troubles: list[str] = field(default_factory=list)
    silence_ms: int = 0
    renewals: int = 0
    looks: int = 0
    idle_detaches: int = 0
    sent: int = 0
    accepted: int = 0
    received: int = 0


class HabitualPeer(Peer):
    """A client that reads partition 0 of a hub, and sends to it all the time, or hardly ever."""

    def __init__(self, world: World, habits: Habits, hub: str, *, is_busy: bool) -> None:
        self.habits = habits
        self.hub = hub
        self.life = Life()
        self.is_busy = is_busy
        self.is_frozen = False
        self._pairs: dict[str, RequestPair] = {}
        self._requests: dict[str, deque[Message]] = {CBS: deque(), MANAGEMENT: deque()}
        self._renew_at_ms: dict[str, int] = {}
        self._reader: Any = None
        self._sender: Any = None
        self._unsent = 0
        self._send_at_ms = self._look_at_ms = 0
        self._heard_ms = self._spoke_ms = world.env.monotonic_ms()
        by_key = {"sasl_mechanism": "PLAIN", "sasl_response": f"\0{ROOT}\0{KEY}".encode()}
        proof: dict[str, Any] = {} if habits.token_ms else by_key
        settings = EndpointSettings(
            "client", HOST, limits=ConnectionLimits(idle_timeout_ms=habits.idle_timeout_ms), **proof
        )
        super().__init__(world, settings, tick_ms=STEP_MS)
        self._renew_at_ms = dict.fromkeys(habits.audiences if habits.token_ms else (), 0)
        self.endpoint.open()

    @property
    def is_authorized(self) -> bool:
        """Whether it has proved all its rights once."""
        return self.life.renewals >= len(self._renew_at_ms)

    def send(self) -> None:
        """Send one event, over a new link where the last one is gone."""
        self._unsent += 1
        if self._sender is None:
            self._sender = self._new_session().attach_sender(
                self.name("sender"), source=Source(address="here"), target=Target(address=f"{self.hub}/Partitions/0")
            )

    def look(self) -> None:
        """Ask for the hub's properties."""
        asked = {"operation": "READ", "type": "com.microsoft:eventhub", "name": self.hub}
        self._requests[MANAGEMENT].append(Message(application_properties=asked))

    # Its own clock: the engine's client would write heartbeats of its own

    def tick(self) -> bool:
        if self.is_cut:
            return False
        now_ms = self.env.monotonic_ms()
        self._take_news()
        if not self.is_frozen and self.endpoint.is_open:
            self._go_on(now_ms)
        if self.endpoint.unsent_bytes:
            self._spoke_ms = now_ms
        elif now_ms - self._spoke_ms >= self.habits.heartbeat_ms:
            self._spoke_ms = now_ms
            self._kept.append(EMPTY_FRAME)
        self._carry_to_server()
        due_ms = self.server.next_deadline_ms()
        if due_ms is not None and due_ms <= now_ms:
            self._server_events(self.server.on_time(now_ms))
        self._flush()
        return True

    def idle_until_ms(self) -> int | None:
        """Never: each tick looks at all its habits."""
        return self.env.monotonic_ms()

    def _flush(self) -> None:
        if self.server.unsent_bytes:
            now_ms = self.env.monotonic_ms()
            self.life.silence_ms = max(self.life.silence_ms, now_ms - self._heard_ms)
            self._heard_ms = now_ms
        super()._flush()

    # What it does

    def _go_on(self, now_ms: int) -> None:
        for audience, at_ms in self._renew_at_ms.items():
            if now_ms >= at_ms:
                self._renew_at_ms[audience] = now_ms + self.habits.renew_ms
                self._requests[CBS].append(self._put_token(audience))
        self._ask(CBS, now_ms)
        if not self.is_authorized:
            return
        if self._reader is None:
            self._begin()
        if self.is_busy and now_ms >= self._send_at_ms:
            self._send_at_ms = now_ms + BUSY_MS
            self.send()
        if self.is_busy and now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + LOOK_MS
            self.look()
        self._ask(MANAGEMENT, now_ms)
        while self._unsent and self._sender is not None and self._sender.sendable:
            self._unsent -= 1
            self.life.sent += 1
            self._sender.send(event(b"x"), settled=False)

    def _begin(self) -> None:
        """Use each kind of link once."""
        self._reader = self._new_session().attach_receiver(
            "reader",
            source=Source(address=f"{self.hub}/ConsumerGroups/$Default/Partitions/0"),
            target=Target(address="reader"),
        )
        self._reader.grant(10_000)
        self.send()
        self.look()

    def _ask(self, node: str, now_ms: int) -> None:
        """Send the next request to a node, one at a time."""
        pair, waiting = self._pairs.get(node), self._requests[node]
        if pair is not None and pair.asked_at_ms is not None:
            if now_ms - pair.asked_at_ms > ANSWER_MS:
                self._freeze(f"{node} gave no answer")
        elif waiting and pair is None:
            session = self._new_session()
            name = self.name(node)
            ours, theirs = Source(address=name), Source(address=node)
            receiver = session.attach_receiver(f"{name} answers", source=theirs, target=Target(address=name))
            sender = session.attach_sender(f"{name} requests", source=ours, target=Target(address=node))
            if not self.habits.grants_one:
                receiver.grant(10_000)
            self._pairs[node] = RequestPair(session, sender, receiver)
        elif waiting and pair is not None and pair.sender.sendable:
            pair.asked_at_ms = now_ms
            if self.habits.grants_one:
                pair.receiver.grant(1)
            request = waiting.popleft()
            reply_to = pair.receiver.target.address
            properties = Properties(message_id=uuid4(), reply_to=reply_to)
            message = Message(
                properties=properties, application_properties=request.application_properties, body=request.body
            )
            pair.sender.send(encode_message(message), settled=False)

    def _put_token(self, audience: str) -> Message:
        uri, ends_ms = f"sb://{HOST}/{self.hub}{audience}", self.env.now_ms() + self.habits.token_ms
        kind = "servicebus.windows.net:sastoken"
        asked = {"operation": "put-token", "type": kind, "name": uri, "expiration": Timestamp(ends_ms)}
        return Message(application_properties=asked, body=ValueBody(make_token(uri, ROOT, KEY, ends_ms // 1000)))

    def _new_session(self) -> Any:
        return self.session() if self.habits.shares_session else self.endpoint.begin_session()

    # What it hears

    def _take_news(self) -> None:
        events, said = list(self.side.events), list(self.side.said)
        self.side.events.clear()
        self.side.said.clear()
        for news in events:
            if isinstance(news, LinkDetached | LinkRefused):
                self._lost(news)
            elif isinstance(news, Closed):
                self._freeze(f"the connection was closed: {news.error}")
            elif isinstance(news, Settled) and news.link is self._sender:
                self.life.accepted += isinstance(news.outcome, Accepted) * (news.last_id - news.first_id + 1)
        for entry in said:
            if isinstance(entry, Delivered):
                self._delivered(entry)

    def _lost(self, news: LinkDetached | LinkRefused) -> None:
        condition = "" if news.error is None else news.error.condition
        if news.link is self._sender and condition == "amqp:link:detach-forced" and not self.is_busy:
            self._sender = None
            self.life.idle_detaches += 1
        elif isinstance(news, LinkRefused) or not news.link.session.is_writable or news.error is not None:
            self._freeze(f"the link {news.link.name} is gone: {news.error}")

    def _delivered(self, entry: Delivered) -> None:
        if entry.link_name == "reader":
            self.life.received += 1
            return
        node = next(node for node, pair in self._pairs.items() if pair.receiver.name == entry.link_name)
        pair = self._pairs[node]
        code, text = status_of(decode_message(entry.payload))
        pair.asked_at_ms = None
        if code not in (200, 202):
            self._freeze(f"{node} said {code} {text}")
        elif node == CBS:
            self.life.renewals += 1
            if not self.habits.keeps_cbs:
                pair.session.end()
                del self._pairs[CBS]
        else:
            self.life.looks += 1

    def _freeze(self, why: str) -> None:
        if not self.is_frozen:
            self.is_frozen = True
            self.life.troubles.append(f"after {self.env.monotonic_ms() / MINUTE:.1f} min: {why}")
