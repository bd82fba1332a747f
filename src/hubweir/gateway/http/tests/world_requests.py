"""Requests straight to the application, on a world with virtual time and a broker whose answers a test decides on."""

from __future__ import annotations

import asyncio
from typing import Any

from hubweir.auth.shared_access_signature import make_token
from hubweir.broker.commands.fragment import AskFragmentInfo, FragmentInfo
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http.application import Application
from hubweir.gateway.http.tests.service import KEY, ROOT, Answer
from hubweir.namespace.queue_description import QueueDescription

# Of a queue that nothing is said about.
LOCK_MS = 60_000


def queue_world() -> World:
    """A world with a hub and the queue `orders`."""
    world = World()
    made = world.wait(lambda done: world.gateway.keeper.create(QueueDescription("orders"), done))
    assert isinstance(made, QueueDescription), made
    return world


def counts(world: World) -> FragmentInfo:
    """What the fragment of `orders` holds now."""
    entity = world.namespace.find("orders", QueueDescription)
    assert entity is not None
    info = world.ask(AskFragmentInfo(entity.placements[0].log_id))
    assert isinstance(info, FragmentInfo)
    return info


class Asking:
    """One request. gone: to be set when the peer goes away. answer: None until it is sent."""

    def __init__(
        self, world: World, method: str, path: str, body: bytes = b"", headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        self.gone = asyncio.Event()
        self.answer: Answer | None = None
        self._world = world
        self._pieces = [body]
        self._head: Any = None
        token = make_token("sb://localhost/", ROOT, KEY, world.env.now_ms() // 1000 + 600)
        raw_path, _, query = path.partition("?")
        self._scope = {
            "type": "http", "method": method, "raw_path": raw_path.encode(), "query_string": query.encode(),
            "scheme": "http", "headers": [
                (b"host", b"localhost"), (b"authorization", token.encode()),
                (b"content-length", str(len(body)).encode()), *headers,
            ],
        }  # fmt: skip

    async def run(self) -> None:
        await Application(self._world.process, lambda: True)(self._scope, self._receive, self._send)

    async def _receive(self) -> Any:
        if self._pieces:
            return {"type": "http.request", "body": self._pieces.pop(), "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            self._body = b""
            return
        self._body += message["body"]
        if not message.get("more_body"):
            headers = {name.decode().lower(): value.decode() for name, value in self._head["headers"]}
            self.answer = Answer(self._head["status"], headers, self._body)


def ask_all(
    world: World,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    count: int = 1,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> list[Answer | None]:
    """Requests of one turn of the loop; None: no answer came while there was something to do."""

    async def run() -> list[Answer | None]:
        asked = [Asking(world, method, path, body, headers) for _ in range(count)]
        tasks = [asyncio.ensure_future(each.run()) for each in asked]
        await let_run(world)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [each.answer for each in asked]

    return asyncio.run(run())


async def let_run(world: World, steps: int = 100) -> None:
    """Let the tasks and the world do what there is to do."""
    for _ in range(steps):
        await asyncio.sleep(0)
        world.run_for(1)
