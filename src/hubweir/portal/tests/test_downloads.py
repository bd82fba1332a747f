"""Downloads: bytes come as they were sent, as a file of a kind that no browser runs."""

import base64
import json

import pytest

from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http.tests.world_requests import ask_all
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.portal.rendering import SECURITY_HEADERS
from hubweir.portal.tests.browser import Browser, signed_in

RAW = bytes(range(256))


@pytest.fixture
def world() -> World:
    world = World(hubs={"orders": 1})
    world.create(QueueDescription("kitchen"))
    return world


@pytest.fixture
def browser(world: World) -> Browser:
    return signed_in(world)


def post(world: World, path: str, body: bytes) -> None:
    (answer,) = ask_all(world, "POST", path, body, headers=((b"colour", b'"red"'),))
    assert answer is not None and answer.status == 201


@pytest.mark.parametrize(
    ("path", "page", "name"),
    [("/orders/messages", "event-body/orders?partition=0&at=0", "orders-0-0.bin"),
     ("/kitchen/messages", "message-body/kitchen?at=1", "kitchen-1.bin")],
)  # fmt: skip
def test_a_body_comes_byte_by_byte_as_a_file(world: World, browser: Browser, path: str, page: str, name: str) -> None:
    post(world, path, RAW)
    answer = browser.get(page)
    assert answer.status == 200 and answer.body == RAW
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert SECURITY_HEADERS.items() <= answer.headers.items()
    assert browser.get(page.replace("at=0", "at=7").replace("at=1", "at=8")).status in (400, 404)


def test_what_a_page_shows_comes_as_json(world: World, browser: Browser) -> None:
    post(world, "/orders/messages", RAW)
    post(world, "/orders/messages", "<b>é</b>".encode())
    answer = browser.get("download-events/orders?start=oldest")
    first, second = json.loads(answer.body)
    assert answer.headers["content-type"] == "application/json"
    assert base64.b64decode(first["body"]["base64"]) == RAW and second["body"] == "<b>é</b>"
    assert (second["sequence_number"], second["partition"], second["properties"]) == (1, "0", {"colour": "red"})
    assert [
        each["sequence_number"] for each in json.loads(browser.get("download-events/orders?start=sequence&at=1").body)
    ] == [1]
    post(world, "/kitchen/messages", b"tea")
    (message,) = json.loads(browser.get("download-messages/kitchen").body)
    assert (message["body"], message["state"], message["delivery_count"]) == ("tea", "active", 0)
    assert json.loads(browser.get("download-messages/kitchen?part=dead-letters").body) == []


def test_messages_of_a_partitioned_queue_are_found_by_their_long_numbers(world: World, browser: Browser) -> None:
    world.create(QueueDescription("spread", storage=StorageSettings(is_partitioned=True)))
    for number in range(40):
        browser.post("send/spread", {"body": f"message {number}", "partition_key": f"key {number}"})
    first = browser.get("messages/spread")
    path = first.text.partition('rel="next" href="/portal/')[2].partition('"')[0].replace("&amp;", "&")
    second = browser.get(path)
    assert second.status == 200 and second.text.count('class="sequence"') == 15
    body = second.text.partition('href="/portal/message-body/')[2].partition('"')[0].replace("&amp;", "&")
    assert browser.get(f"message-body/{body}").body.startswith(b"message ")


def test_a_name_with_slashes_makes_one_file_name(world: World, browser: Browser) -> None:
    world.create(QueueDescription("a/b.c~d"))
    answer = browser.get("download-messages/a/b.c~d")
    assert answer.headers["content-disposition"] == 'attachment; filename="a-b.c-d-messages.json"'


@pytest.mark.parametrize("page", ["event-body/orders?at=0", "download-events/orders", "message-body/kitchen?at=0",
                                  "download-messages/kitchen"])  # fmt: skip
def test_who_may_not_listen_downloads_nothing(world: World, page: str) -> None:
    world.set_rule("sends", Rights.SEND, key="send key")
    assert signed_in(world, "sends", "send key").get(page).status == 403


@pytest.mark.parametrize("page", ["event-body/orders?partition=0", "event-body/orders?partition=x&at=0",
                                  "message-body/kitchen?at=-1", "message-body/kitchen?at=1&part=x",
                                  "download-events/orders?count=1000"])  # fmt: skip
def test_what_cannot_be_asked_is_told(browser: Browser, page: str) -> None:
    assert browser.get(page).status in (400, 404)
