"""A gateway with a real broker on a disk in memory and virtual time, and clients made of the engine itself.

Nothing is a stand-in but the sockets: a Peer carries bytes between a client endpoint and the endpoint of a connection
host, as two drivers would. Time passes when a test says so; World.run_for plays everything that is due.

Long because the world and its peer know each other, and a peer does all that clients may do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.messaging.annotations import SELECTOR_FILTER
from hubweir.amqp.messaging.message import DataBody, Message, Properties, ValueBody, decode_message, encode_message
from hubweir.amqp.messaging.outcome import TransactionalState
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import LinkAttached, LinkDetached, LinkRefused, Settled
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Described, Symbol
from hubweir.auth.shared_access_signature import make_token
from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.process import AskCounters, CountersTaken, Refusal
from hubweir.counters import Counters
from hubweir.drivers.tls import PeerCertificate
from hubweir.errors import ENTITY_MOVED, STORE_OFFLINE
from hubweir.gateway.amqp.connections import Connections
from hubweir.gateway.brokers import Brokers, InProcessBroker, OnPush
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.settings import GatewaySettings, LinkSettings
from hubweir.limits import GatewayLimits
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.catalog_log import load_catalog
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import DEVELOPMENT
from hubweir.testing.answers import answered, made_log
from hubweir.testing.endpoint_pair import Side
from hubweir.testing.simulated_env import SimulatedEnv

T = TypeVar("T")
HOST = "localhost"
ROOT, KEY = "RootManageSharedAccessKey", "SAS_KEY_VALUE"
HOUR_MS = 3_600_000


class Gate:
    """A broker client in front of the broker: notes commands, and may refuse, hold or lose their answers.

    is_up: while it is not, every command is refused.
    """

    def __init__(self, broker: Broker) -> None:
        self._client = InProcessBroker(broker)
        self.commands: list[Command] = []
        self.refuse: dict[type, Refusal] = {}
        self.hold: dict[type, list[Callable[[], None]]] = {}
        self.is_up = True

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        self.commands.append(command)
        if not self.is_up:
            on_answer(Refusal(STORE_OFFLINE, "the broker is away"))
        elif type(command) in self.refuse:
            on_answer(self.refuse[type(command)])
        elif type(command) in self.hold:
            self.hold[type(command)].append(lambda: self._client.submit(command, on_answer))
        else:
            self._client.submit(command, on_answer)

    def release(self, kind: type) -> None:
        """Let the commands of this kind that were held go on."""
        for submit in self.hold.pop(kind):
            submit()

    def listen(self, on_push: OnPush) -> None:
        self._client.listen(on_push)

    def sent(self, kind: type[T]) -> list[T]:
        """The commands of a kind so far."""
        return [command for command in self.commands if isinstance(command, kind)]


def quotas(**limits: Any) -> GatewaySettings:
    """Of a namespace whose profile has these limits and no others."""
    return GatewaySettings(profile=replace(DEVELOPMENT, **limits))


class World:
    """One process: stores with a broker each, catalog with hubs, gateway.

    gates, brokers, stores: by the number of the store; gate, broker, store: of the first, which most tests leave alone.
    """

    def __init__(
        self,
        *,
        hubs: dict[str, int] | None = None,
        settings: GatewaySettings | None = None,
        limits: GatewayLimits | None = None,
        link_settings: LinkSettings | None = None,
        env: SimulatedEnv | None = None,
        stores: int = 1,
    ) -> None:
        self.env = env or SimulatedEnv(7)
        self.counters = Counters()
        catalog = self.catalog = MessagingStore.open(self.env, "catalog")
        ids = catalog.log_ids()
        log = made_log(self.env, catalog, ids[0] if ids else self.env.new_id())
        settings = settings or GatewaySettings()
        loaded = answered(self.env, partial(load_catalog, log))
        writer = CatalogWriter(log, self.env, loaded, profile=settings.profile, host=HOST)
        self.namespace = writer.namespace
        self.stores = [
            MessagingStore.open(self.env, f"store-{number}", counters=self.counters) for number in range(stores)
        ]
        self.brokers = [Broker(self.env, store, self.counters) for store in self.stores]
        for broker in self.brokers:
            broker.start()
        self.gates = [Gate(broker) for broker in self.brokers]
        self.store, self.broker, self.gate = self.stores[0], self.brokers[0], self.gates[0]
        self.process = GatewayProcess(
            self.env,
            Brokers(self.gates),
            limits=limits or GatewayLimits(),
            link_settings=link_settings,
            counters=self.counters,
        )
        self.connections = Connections(self.process)
        self.gateway = Gateway(self.process, writer, settings)
        self.problems = self.wait(self.gateway.keeper.start)
        if not ids:
            for name, rights in ((ROOT, Rights.ALL), ("sender", Rights.SEND), ("listener", Rights.LISTEN)):
                self.set_rule(name, rights)
            for name, count in (hubs or {"hub": 4}).items():
                self.create_hub(name, count)

    def create_hub(self, name: str, partition_count: int) -> Any:
        return self.create(EventHubDescription(name, partition_count))

    def create(self, description: EntityDescription) -> Any:
        """Make an entity of any kind."""
        return self.wait(lambda done: self.gateway.keeper.create(description, done))

    def set_rule(self, name: str, rights: Rights, *, hub: str | None = None, key: str = KEY) -> None:
        rule = AuthorizationRuleDescription(name, rights, Secret(key), Secret(""))
        self.wait(lambda done: self.gateway.keeper.change_rules(hub, lambda level: level.set(rule), done))

    def wait(self, call: Callable[[Callable[[Any], None]], None]) -> Any:
        """Run a call that answers through a callback, and return its answer."""
        answers: list[Any] = []
        call(answers.append)
        for _ in range(1_000):
            if answers:
                return answers[0]
            self.env.run_for(1)
        raise AssertionError("no answer within a second of virtual time")

    def ask(self, command: Command) -> Answer:
        """A command straight to the broker that has its log; where none has, the last one's refusal."""
        for broker in self.brokers:
            answer: Answer = self.wait(partial(broker.submit, command))
            if not isinstance(answer, Refusal) or answer.condition is not ENTITY_MOVED:
                break
        return answer

    @property
    def open_readers(self) -> int:
        """How many readers the broker has open."""
        answer = self.ask(AskCounters())
        assert isinstance(answer, CountersTaken)
        return answer.values["broker.readers"]

    def run_for(self, milliseconds: int) -> None:
        self.env.run_for(milliseconds)

    def peer(self, *, mechanism: str = "ANONYMOUS", response: bytes = b"", opened: bool = True, **known: Any) -> Peer:
        """known: as Peer takes it."""
        peer = Peer(self, EndpointSettings("peer", HOST, sasl_mechanism=mechanism, sasl_response=response), **known)
        if opened:
            peer.endpoint.open()
            self.run_for(20 * peer.tick_ms)
        return peer

    def trusted_peer(self, **known: Any) -> Peer:
        """A peer whose connection may do everything, by SASL PLAIN."""
        return self.peer(mechanism="PLAIN", response=f"\0{ROOT}\0{KEY}".encode(), **known)


class Peer:
    """One connection: a client endpoint, a connection host, and the two drivers between them."""

    def __init__(
        self,
        world: World,
        settings: EndpointSettings,
        *,
        certificate: PeerCertificate | None = None,
        is_private: bool = True,
        tick_ms: int = 1,
    ) -> None:
        """certificate, is_private: what the transport knows of the peer. tick_ms: how often bytes go to the service
        and time passes for both ends; a test of minutes takes a coarse one.
        """
        self.peer_certificate, self.is_private, self.tick_ms = certificate, is_private, tick_ms
        self.is_tls = certificate is not None
        self.world = world
        self.env = world.env
        self.side = Side(Endpoint(Role.CLIENT, settings, now_ms=self.env.monotonic_ms()))
        self.endpoint = self.side.endpoint
        self.server, self.host = world.connections.new("a test")
        self.reading_paused = False
        self.transport_full = False
        self.unwritten_bytes = 0  # what the transport says that it holds
        self.came = bytearray()  # every byte from the service
        self.is_cut = self._due = False
        self._kept: list[bytes] = []
        self._session: Any = None
        self._names = 0
        self.host.on_connected(self)  # type: ignore[arg-type]  # stands in for the driver
        self.env.keep_ticking(self)

    # What the host asks of its driver

    def wake(self) -> None:
        if not self._due:
            self._due = True
            self.env.call_soon(self._wake_up)

    def pause_reading(self) -> None:
        self.reading_paused = True

    def resume_reading(self) -> None:
        self.reading_paused = False
        self.env.call_soon(self._carry_to_server)

    # Bytes

    def cut(self) -> None:
        """The socket dies."""
        self.is_cut = True
        for event in self.server.receive_eof(self.env.monotonic_ms()):
            self.host.on_event(event)
        self.host.on_turn_end()
        self.host.on_closed()

    def tick(self) -> bool:
        """Client bytes go over, and deadlines of both ends pass."""
        if self.is_cut:
            return False
        self._carry_to_server()
        now_ms = self.env.monotonic_ms()
        for endpoint, take in ((self.server, self._server_events), (self.endpoint, self.side.take)):
            due_ms = endpoint.next_deadline_ms()
            if due_ms is not None and due_ms <= now_ms:
                take(endpoint.on_time(now_ms))
        self._flush()
        return True

    def idle_until_ms(self) -> int | None:
        """The next deadline of both ends, unless bytes can go over."""
        if self.is_cut:
            return None
        server, now_ms = self.server, self.env.monotonic_ms()
        if self.endpoint.unsent_bytes or (self._kept and not self.reading_paused):
            return now_ms
        if (server.unsent_bytes or server.is_closed) and not self.transport_full:
            return now_ms
        dues_ms = (server.next_deadline_ms(), self.endpoint.next_deadline_ms())
        return min((due_ms for due_ms in dues_ms if due_ms is not None), default=None)

    def _server_events(self, events: list[Any]) -> None:
        for event in events:
            self.host.on_event(event)
        self.host.on_turn_end()

    def _carry_to_server(self) -> None:
        data = self.side.drain()
        if data:
            self._kept.append(data)
        while self._kept and not self.reading_paused and not self.is_cut:
            # Overwritten afterwards, as a driver's shared buffer is: nothing may point into it later.
            buffer = bytearray(self._kept.pop(0))
            self._server_events(self.server.receive_data(memoryview(buffer), self.env.monotonic_ms()))
            buffer[:] = bytes(len(buffer))
            self._flush()

    def _wake_up(self) -> None:
        self._due = False
        self.host.on_turn_end()
        self._flush()

    def _flush(self) -> None:
        if self.is_cut or self.transport_full:
            return
        data = b"".join(bytes(piece) for piece in self.server.data_to_send())
        self.came += data
        if data:
            self.side.take(self.endpoint.receive_data(memoryview(bytearray(data)), self.env.monotonic_ms()))
        if self.server.is_closed:
            self.is_cut = True
            self.host.on_closed()

    # What a test does

    def run(self, milliseconds: int = 50) -> None:
        self.world.run_for(milliseconds)

    def session(self) -> Any:
        if self._session is None:
            self._session = self.endpoint.begin_session()
        return self._session

    def name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}-{self._names}"

    def sender(self, address: str, *, session: Any = None, **attach: Any) -> SenderLink:
        """Ask for a link to send on, and let the answer come."""
        link: SenderLink = (session or self.session()).attach_sender(
            self.name("sender"), source=Source(address="here"), target=Target(address=address), **attach
        )
        self.run()
        return link

    def receiver(
        self, address: str, *, selector: str | None = None, credit: int = 0, session: Any = None, **attach: Any
    ) -> ReceiverLink:
        """Ask for a link to receive on, and let the answer come."""
        wanted = None if selector is None else {SELECTOR_FILTER: Described(SELECTOR_FILTER, selector)}
        name = self.name("receiver")
        link: ReceiverLink = (session or self.session()).attach_receiver(
            name, source=Source(address=address, filter=wanted), target=Target(address=f"to-{name}"), **attach
        )
        if credit:
            link.grant(credit)
        self.run()
        return link

    def refusal(self, link: Any) -> Any:
        """The error with which a link was refused or detached; None while it was not."""
        for event in self.side.events:
            if isinstance(event, LinkRefused | LinkDetached) and event.link is link:
                return event.error
        return None

    def is_attached(self, link: Any) -> bool:
        attached = any(isinstance(event, LinkAttached) and event.link is link for event in self.side.events)
        return attached and self.refusal(link) is None

    def outcomes(self, link: Any) -> list[tuple[int, int, str]]:
        """Settlements of a sender's deliveries: first id, last id, and accepted or the condition of the rejection."""
        return [
            (event.first_id, event.last_id, outcome_text(event.outcome))
            for event in self.side.events
            if isinstance(event, Settled) and event.link is link
        ]

    def received_count(self, link: Any) -> int:
        """How many messages came on a link; none of them is decoded for it."""
        return sum(entry.link_name == link.name for entry in self.side.deliveries())

    def received(self, link: Any) -> list[Message]:
        """The messages that came on a link."""
        return [decode_message(entry.payload) for entry in self.side.deliveries() if entry.link_name == link.name]

    def bodies(self, link: Any) -> list[bytes]:
        return [b"".join(m.body.parts) for m in self.received(link) if isinstance(m.body, DataBody)]

    def request(self, node: str, message: Message, state: TransactionalState | None = None) -> Message:
        """One request on a node of requests, over links of its own, and its answer. state: of its delivery."""
        reply = self.receiver(node, credit=10)
        ask = self.sender(node)
        ask.send(encode_message(message), settled=False, state=state)
        self.run(200)
        (answer,) = self.received(reply)
        ask.detach()
        reply.detach()
        self.run()
        return answer

    def put_token(
        self, audience: str, *, rule: str = ROOT, key: str = KEY, lifetime_ms: int = HOUR_MS, resource: str = ""
    ) -> tuple[int, str]:
        """put-token over links of its own: status code and description."""
        expires_at_s = (self.env.now_ms() + lifetime_ms) // 1000
        token = make_token(resource or audience, rule, key, expires_at_s)
        return status_of(self.request("$cbs", put_token(audience, token)))


def put_token(audience: str, token: object, *, kind: str = "servicebus.windows.net:sastoken") -> Message:
    return Message(
        properties=Properties(message_id=UUID(int=7)),
        application_properties={"operation": "put-token", "type": kind, "name": audience},
        body=ValueBody(token),
    )


def delete_token(audience: object) -> Message:
    said = {"operation": "delete-token", "type": "servicebus.windows.net:sastoken", "name": audience}
    return Message(application_properties=said, body=ValueBody(None))


def status_of(answer: Message) -> tuple[int, str]:
    said = answer.application_properties or {}
    code, text = said["status-code"], said["status-description"]
    assert isinstance(code, int) and isinstance(text, str)
    return code, text


def outcome_text(outcome: object) -> str:
    error = getattr(outcome, "error", None)
    return type(outcome).__name__.lower() if error is None else str(error.condition)


def event(body: bytes, **sections: Any) -> bytes:
    """One encoded event."""
    return encode_message(Message(body=DataBody((body,)), **sections))


def keyed(body: bytes, key: str) -> bytes:
    return event(body, message_annotations={Symbol("x-opt-partition-key"): key})
