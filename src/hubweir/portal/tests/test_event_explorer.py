"""Following live: each second what came since, no more than a page takes, and nothing is held for it in between."""

import pytest

from hubweir.broker.commands.reader import CloseReader, OpenReader
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http import exchange
from hubweir.gateway.http.tests.world_requests import ask_all
from hubweir.namespace.rights import Rights
from hubweir.portal.event_explorer import FOLLOW_COUNT
from hubweir.portal.tests.browser import Browser, signed_in, text_of


@pytest.fixture
def world() -> World:
    return World(hubs={"orders": 2})


@pytest.fixture
def browser(world: World) -> Browser:
    return signed_in(world)


def send(world: World, count: int, first: int = 0) -> None:
    batch = "[" + ",".join(f'{{"Body": "event {first + number}"}}' for number in range(count)) + "]"
    media = ((b"content-type", b"application/vnd.microsoft.servicebus.json"),)
    (answer,) = ask_all(world, "POST", "/orders/partitions/0/messages", batch.encode(), headers=media)
    assert answer is not None and answer.status == 201


def numbers(page: str) -> list[int]:
    return [int(part.partition("<")[0]) for part in page.split('<span class="sequence">')[1:]]


def next_path(page: str) -> str:
    """Where a page that follows asks next."""
    return page.partition('hx-get="/portal/')[2].partition('"')[0].replace("&amp;", "&")


def test_a_page_that_follows_shows_each_event_once_and_in_order(world: World, browser: Browser) -> None:
    send(world, 3)
    page = browser.get("events/orders?follow=on")
    seen, path = numbers(page.text), next_path(page.text)
    for count in (2, 1):
        assert browser.get(path, hx_request="true").status == 204, "nothing came"
        send(world, count)
        part = browser.get(path, hx_request="true")
        assert part.status == 200 and "<html" not in part.text
        seen, path = seen + numbers(part.text), next_path(part.text)
    assert seen == [0, 1, 2, 3, 4, 5]


def test_an_empty_partition_is_followed_from_its_first_event_on(world: World, browser: Browser) -> None:
    page = browser.get("events/orders?follow=on")
    assert "This page follows partition 0" in text_of(page) and "from=0" in next_path(page.text)
    send(world, 1)
    assert numbers(browser.get(next_path(page.text), hx_request="true").text) == [0]


def test_who_cannot_keep_up_is_told_how_many_passed_by(world: World, browser: Browser) -> None:
    page = browser.get("events/orders?follow=on")
    send(world, FOLLOW_COUNT + 7)
    part = browser.get(next_path(page.text), hx_request="true")
    assert numbers(part.text) == list(range(7, FOLLOW_COUNT + 7)) and "7 events passed by" in text_of(part)


def test_following_leaves_no_reader_and_no_room_taken(world: World, browser: Browser) -> None:
    send(world, 1)
    used = world.process.budget.used
    for _ in range(3):
        browser.get("follow/orders?from=0&partition=0", hx_request="true")
    assert len(world.gates[0].sent(OpenReader)) == len(world.gates[0].sent(CloseReader)) >= 3
    assert world.process.budget.used == used


def test_a_service_that_holds_all_that_it_may_says_that_it_is_busy(
    world: World, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "ROOM_WAIT_S", 0.05)
    world.process.budget.take_bytes(world.process.limits.process_budget_bytes)
    before = len(world.gates[0].sent(OpenReader))
    answer = browser.ask_late("GET", "/portal/events/orders?start=oldest")
    assert answer.status == 503 and len(world.gates[0].sent(OpenReader)) == before


def test_what_a_page_follows_has_to_be_said(world: World, browser: Browser) -> None:
    for query in ("", "from=x", "from=0&partition=9", "from=99999999999999999999"):
        assert browser.get(f"follow/orders?{query}", hx_request="true").status in (400, 404)
    world.set_rule("sends", Rights.SEND, key="send key")
    assert signed_in(world, "sends", "send key").get("follow/orders?from=0").status == 403
