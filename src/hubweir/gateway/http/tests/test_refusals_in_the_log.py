"""Whatever is refused over HTTP: the id of the answer stands in the log, beside the entity and the reason."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest

from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.tests.world import KEY, ROOT, World
from hubweir.gateway.http.application import Application
from hubweir.service_log import Line

TRACKING_ID = re.compile(r"TrackingId:([0-9a-f-]+_G0)")
GOOD = make_token("https://localhost/", ROOT, KEY, 4_000_000_000)
EXPIRED = make_token("https://localhost/", ROOT, KEY, 1_000_000_000)


def ask(world: World, path: str, *, token: str = GOOD, method: str = "POST", body: bytes = b"x") -> str:
    """The body of the answer."""
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", token.encode()), (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": method, "raw_path": path.encode(), "query_string": b"", "scheme": "http"}
    application = Application(world.process, lambda: True)
    asyncio.run(application({**scope, "headers": headers, "client": ("10.1.2.3", 4567)}, receive, send))  # type: ignore[arg-type]
    return b"".join(each.get("body", b"") for each in said).decode()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"path": "/missing/messages"}, "amqp:not-found, peer 10.1.2.3:4567, entity 'missing': The messaging entity"),
        (
            {"path": "/hub/messages", "token": EXPIRED},
            "com.microsoft:auth-failed, peer 10.1.2.3:4567, entity 'hub': ",
        ),
        ({"path": "/hub/messages", "method": "OPTIONS"}, "405, peer 10.1.2.3:4567, entity 'hub': "),
        ({"path": "/$nothing"}, "404, peer 10.1.2.3:4567: "),
        ({"path": "/a%2"}, "400, peer 10.1.2.3:4567: The path cannot be read"),
    ],
)
def test_the_id_of_an_answer_stands_in_the_log(
    asked: dict[str, Any], says: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    caplog.set_level(logging.DEBUG, "hubweir")
    answer = ask(world, **asked)
    seen = TRACKING_ID.search(answer)
    assert seen is not None, answer
    (line,) = [line for line in caplog.messages if seen[1] in line]
    assert line.startswith(f"HTTP refused: {says}")
    assert KEY not in caplog.text and "sig=" not in caplog.text


def test_every_request_of_a_flood_is_a_line_of_its_conditions_kind(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    caplog.set_level(logging.INFO, "hubweir.gateway.refusals")
    for _ in range(15):
        ask(world, "/missing/messages")
    ask(world, "/hub/messages", token=EXPIRED)
    sorts = [record.msg.sort for record in caplog.records if isinstance(record.msg, Line)]
    assert len(sorts) == 16 and sorts.count("amqp:not-found") == 15
