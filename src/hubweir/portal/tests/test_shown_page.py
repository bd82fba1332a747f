"""Avro bodies as pages show them: records where a body carries its schema; where it does not, which one is missing."""

import pytest

from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http.tests.world_requests import ask_all
from hubweir.namespace.queue_description import QueueDescription
from hubweir.portal import avro_reading, shown_page, visit
from hubweir.portal.avro_reading import AvroLimits
from hubweir.portal.tests.avro_files import made, orders, written
from hubweir.portal.tests.browser import Browser, signed_in, text_of

PAGES = {"/orders/messages": "events/orders?start=oldest&view=", "/kitchen/messages": "messages/kitchen?view="}
RECORD = '{ "dish": "tea", "table": 7 } { "dish": "café", "table": null }'


@pytest.fixture
def world() -> World:
    world = World(hubs={"orders": 1})
    world.create(QueueDescription("kitchen"))
    return world


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine under load needs many times the time that a page has."""
    monkeypatch.setattr(avro_reading, "LIMITS", AvroLimits(page_ms=100_000))
    monkeypatch.setattr(visit, "ANSWER_S", 100)


@pytest.fixture
def browser(world: World) -> Browser:
    return signed_in(world)


def post(world: World, path: str, body: bytes, content_type: str = "avro/binary") -> None:
    headers = ((b"content-type", content_type.encode()),)
    (answer,) = ask_all(world, "POST", path, body, headers=headers)
    assert answer is not None and answer.status == 201


@pytest.mark.parametrize("path", PAGES)
def test_records_of_an_avro_file_are_shown_when_somebody_asks_for_them(
    world: World, browser: Browser, path: str
) -> None:
    post(world, path, b'{"first": true}')
    post(world, path, orders("deflate"))
    post(world, path, b"\xc3\x01" + bytes(range(8)) + b"\x06tea")
    told = text_of(browser.get(PAGES[path] + "avro"))
    assert RECORD in told and "shown as avro" in told
    assert "Records of the schema record shop.Order, codec deflate." in told
    assert '{ "first": true }' in told and "It is no Avro object container file" in told
    assert "whose fingerprint (CRC-64-AVRO) is 0001020304050607." in told


@pytest.mark.parametrize("path", PAGES)
def test_no_process_is_started_for_another_view_or_without_an_avro_file(
    world: World, browser: Browser, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_page, "read_avro", None)
    post(world, path, b"\x06tea", "avro/binary+0123")
    told = text_of(browser.get(PAGES[path] + "avro"))
    assert "its content type names schema 0123 of a schema registry" in told
    post(world, path, orders())
    told = text_of(browser.get(PAGES[path] + "auto"))
    assert "An Avro file: choose the view Avro" in told and "shown as hex" in told
    assert "An Avro file" not in text_of(browser.get(PAGES[path] + "hex"))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (made("bytes", b"\x08tea"), "codec null. It is not read: EOFError"),
        (b"Obj\x01", "It is not read: ValueError"),
        (written("string", []), "Records of the schema string, codec null. It holds no record."),
        (written("string", ["tea"]) + b"\x02", "It goes no further: EOFError"),
    ],
    ids=["cut short", "the magic alone", "empty", "broken off"],
)
def test_what_hinders_is_told_beside_what_can_be_shown(world: World, browser: Browser, body: bytes, told: str) -> None:
    post(world, "/orders/messages", body)
    assert told in text_of(browser.get(PAGES["/orders/messages"] + "avro"))


def test_a_record_is_no_markup_and_its_length_is_bounded(world: World, browser: Browser) -> None:
    post(world, "/orders/messages", written("string", ["<script>alert(1)</script>" + "x" * 200_000]))
    page = browser.get(PAGES["/orders/messages"] + "avro").text
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page and "the rest is left out" in page
    assert len(page) < 60_000


def test_a_page_that_follows_shows_records_as_well(world: World, browser: Browser) -> None:
    post(world, "/orders/messages", orders())
    part = browser.get("follow/orders?partition=0&from=0&view=avro", hx_request="true")
    assert RECORD in text_of(part)
