"""A keeper and processes that follow it, in virtual time: what they say to each other goes through frames.

The keeper's process is a World without connections of its own. Each Follower is a process with a gateway and its
connections, on the broker of that world; a test may hold its stream, cut it, or have it come again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from hubweir.broker.commands.command import Answer, Command, OnAnswer, Owner, Push, nobody_waits
from hubweir.broker.commands.process import CloseOwner, Refusal
from hubweir.broker.refusals import refusal_of
from hubweir.broker.wire import decode_answer, decode_command
from hubweir.errors import STORE_OFFLINE, TIMED_OUT, ServiceError
from hubweir.gateway.amqp.connections import Connections
from hubweir.gateway.amqp.tests.world import HOST, World
from hubweir.gateway.brokers import Brokers, OnPush
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.keeper.client import KeeperClient
from hubweir.gateway.keeper.server import KeeperServer
from hubweir.gateway.settings import GatewaySettings
from hubweir.limits import GatewayLimits
from hubweir.testing.broker_frames import sent

NAMESPACE = GatewaySettings().namespace


class SharedGate:
    """The broker for several processes: what it pushes goes to all of them, as over streams of their own."""

    is_up = True

    def __init__(self, world: World) -> None:
        self.submit = world.gate.submit
        self._listeners: list[OnPush] = []
        world.broker.on_push = self._pushed

    def listen(self, on_push: OnPush) -> None:
        self._listeners.append(on_push)

    def _pushed(self, push: Push) -> None:
        for listener in self._listeners:
            listener(push)


class Stream:
    """A process's way to the keeper: frames in order, each a moment later. is_held: nothing reaches the process."""

    def __init__(self, world: KeeperWorld, process: int) -> None:
        self._world, self._process = world, process
        self._on_push: OnPush | None = None
        self._waiting: dict[int, OnAnswer] = {}
        self._requests = 0
        self._life = 0  # of the stream: what an earlier one carried goes nowhere
        self._inbox: deque[tuple[memoryview, bytearray]] = deque()
        self._outbox: deque[Callable[[], None]] = deque()
        self.is_up = False
        self.is_held = False
        self.is_deaf = False  # nothing of the process reaches the keeper, yet
        self.commands: list[Command] = []

    # What the client calls

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        if not self.is_up:
            on_answer(refusal_of(ServiceError(STORE_OFFLINE, "away")))
            return
        self.commands.append(command)
        self._requests += 1
        request, life = self._requests, self._life
        self._waiting[request] = on_answer
        frame = sent(request, command)

        def arrive() -> None:
            self._world.server.submit(decode_command(*frame)[1], lambda answer: self.send(request, answer, life))

        self._outbox.append(arrive)
        self._world.env.call_soon(self._deliver)

    def _deliver(self) -> None:
        while self._outbox and not self.is_deaf:
            self._outbox.popleft()()

    def listen(self, on_push: OnPush) -> None:
        self._on_push = on_push

    # What the keeper sends

    def send(self, request: int, message: Answer | Push, life: int | None = None) -> None:
        if not self.is_up or (life is not None and life != self._life):
            return
        self._inbox.append(sent(request, message))
        self._world.env.call_soon(self.carry)

    def carry(self) -> None:
        """Give the process what came for it."""
        while self._inbox and not self.is_held:
            request, message = decode_answer(*self._inbox.popleft())
            if isinstance(message, Push):
                assert self._on_push is not None
                self._on_push(message)
            else:
                self._waiting.pop(request)(message)

    def release(self) -> None:
        """Nothing is held any more."""
        self.is_held = self.is_deaf = False
        self._world.env.call_soon(self.carry)
        self._world.env.call_soon(self._deliver)

    def end(self) -> None:
        """The stream ends, from whichever side."""
        if not self.is_up:
            return
        self.is_up, self._life = False, self._life + 1
        self._inbox.clear()
        self._outbox.clear()
        waiting, self._waiting = self._waiting, {}
        for on_answer in waiting.values():
            on_answer(Refusal(TIMED_OUT, "the stream ended", known=False))
        self._world.env.call_soon(lambda: self._world.server.submit(CloseOwner(Owner(self._process, -1)), nobody_waits))


class KeeperWorld(World):
    """The process that keeps the catalog, with the broker. ended: processes whose streams it had ended."""

    def __init__(self, **known: Any) -> None:
        super().__init__(**known)
        self.shared_gate = SharedGate(self)
        self.server = KeeperServer(self.process)
        self.server.on_push = self._pushed
        self.server.on_dead = self._dead
        self.followers: dict[int, Follower] = {}
        self.ended: list[int] = []
        self.limits: GatewayLimits = known.get("limits") or GatewayLimits()

    def follower(self, process: int, *, begins: bool = True) -> Follower:
        """One more process that follows. begins: its stream stands, and its first copy is there."""
        follower = self.followers[process] = Follower(self, process)
        if begins:
            follower.came()
            self.run_for(20)
            assert follower.is_ready
        return follower

    def _pushed(self, push: Push) -> None:
        follower = self.followers.get(push.owner.process)
        if follower is not None:
            follower.stream.send(0, push)

    def _dead(self, process: int) -> None:
        """As whoever listens does: the stream is ended, and the process has it again after a while."""
        follower = self.followers[process]
        if follower.stream.is_up:
            self.ended.append(process)
            follower.went()
            self.env.call_later(50, follower.came)


class Follower(World):
    """A process that follows, one of two that the service has, with its connections."""

    def __init__(self, keeper: KeeperWorld, process: int) -> None:
        self.keeper_world = keeper
        self.env, self.counters, self.broker, self.gate = keeper.env, keeper.counters, keeper.broker, keeper.gate
        self.stream = Stream(keeper, process)
        self.process = GatewayProcess(self.env, Brokers([keeper.shared_gate]), limits=keeper.limits, process_id=process)
        self.process.processes = 2
        self.client = KeeperClient(self.env, self.stream, process)
        self.connections = Connections(self.process)
        settings = keeper.gateway.settings
        self.is_ready = False

        def first(followed: Any) -> None:
            self.is_ready = True
            self.namespace = followed.namespace
            self.gateway = Gateway(self.process, followed, settings)

        self.client.follow(settings.namespace, profile=settings.profile, host=HOST, on_first=first)

    def came(self) -> None:
        """Its stream stands."""
        self.stream.is_up = True
        self.stream.is_held = self.stream.is_deaf = False
        self.client.came()

    def went(self) -> None:
        """Its stream ended."""
        self.stream.end()
        self.client.went()

    def snapshot(self) -> bytes:
        """All that its copy holds."""
        return self.namespace._catalog.snapshot()

    def asked(self, call: Callable[[Callable[[Any], None]], None]) -> list[Any]:
        """The answers of a call, which grow."""
        answers: list[Any] = []
        call(answers.append)
        return answers
