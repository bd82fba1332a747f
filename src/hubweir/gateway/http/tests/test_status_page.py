"""The page that says how the service is, by both of its addresses, and an entity that has its name."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hubweir.alarms import LOG_OFFLINE
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.http.router import find_route
from hubweir.gateway.http.tests.service import Http
from hubweir.namespace.rights import Rights


def ask(world: World, path: str) -> Response:
    """As the application does, when it found that the peer may."""
    route, match = find_route("GET", (path,))
    assert route.right is Rights.MANAGE
    request = Request("GET", (path,), "", {}, [], "http://shop.example", _nothing)

    async def answered() -> Response:
        return await route.handler(world.gateway, request, match)

    return asyncio.run(answered())


async def _nothing() -> Any:
    raise AssertionError("the page has no body to read")


@pytest.mark.parametrize("path", ["$status", "$Status", "status", "Status"])
def test_how_the_service_is_comes_as_json_that_nobody_keeps(path: str) -> None:
    world = World(hubs={"hub": 2})
    response = ask(world, path)
    assert (response.status, response.content_type) == (200, "application/json")
    assert response.headers["cache-control"] == "no-store"
    found = json.loads(response.body)
    assert found["status"] == "healthy" and [each["name"] for each in found["entities"]] == ["hub"]


def test_trouble_changes_what_it_says_and_never_its_status() -> None:
    world = World(hubs={"hub": 1})
    world.process.alarms.begin(LOG_OFFLINE, f"a log in namespace {world.namespace.description.name}", "très lent")
    response = ask(world, "$status")
    assert response.status == 200 and json.loads(response.body)["status"] == "unhealthy"
    assert "très lent".encode() in response.body, "as people write it, and in UTF-8"


def test_an_entity_of_that_name_is_at_its_own_address_and_the_page_at_the_other() -> None:
    world = World(hubs={"Status": 1})
    for path in ("status", "STATUS"):
        entity = ask(world, path)
        assert b"EventHubDescription" in entity.body and b"<title" in entity.body and b"Status</title>" in entity.body
    assert json.loads(ask(world, "$status").body)["entities"][0]["name"] == "Status"


def test_the_right_is_one_over_the_namespace_where_no_entity_is_asked_for() -> None:
    assert [find_route("GET", (path,))[1].resource for path in ("$status", "status")] == [(), ()]
    assert find_route("GET", ("statuses",))[1].resource == ("statuses",), "which may be an entity"


def test_nobody_is_shown_it_without_a_token(http: Http) -> None:
    for path in ("/status", "/$status"):
        refused = http.call("GET", path, auth=None)
        assert refused.status == 401 and b"healthy" not in refused.body
        assert json.loads(http.call("GET", path).body)["status"] == "healthy"
