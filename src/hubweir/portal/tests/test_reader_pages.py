"""Readers of a hub: each with its group, owner level and lag, as they are when somebody looks."""

import re

import pytest

from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.reader import CloseReader, OpenReader, ReaderOpened
from hubweir.broker.commands.status import AskReaders
from hubweir.errors import STORE_OFFLINE
from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition
from hubweir.gateway.amqp.tests.world import World
from hubweir.namespace.rights import Rights
from hubweir.portal.tests.browser import Browser, signed_in, text_of


@pytest.fixture
def world() -> World:
    return World(hubs={"orders": 2})


@pytest.fixture
def browser(world: World) -> Browser:
    return signed_in(world)


def log_id(world: World, partition: str = "0") -> str:
    return world.gateway.directory.partition("orders", partition).log_id


def open_reader(world: World, name: str | None = None, level: int | None = None, position: EventPosition = EARLIEST,
                group: str = "$Default") -> int:  # fmt: skip
    opened = world.ask(OpenReader(log_id(world), Owner(world.process.process_id, 41), group, position, level, name))
    assert isinstance(opened, ReaderOpened)
    return opened.reader_id


def rows(browser: Browser) -> list[list[str]]:
    """The cells of the table, as they are written."""
    body = browser.get("readers/orders").text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("<tr>")[1:]]


def test_each_reader_is_told_with_its_lag_and_owner_level(world: World, browser: Browser) -> None:
    for number in range(3):
        browser.post("send/orders", {"body": f"{number}", "partition": "0"})
    open_reader(world, "<b>tea</b>", 7)
    open_reader(world, position=LATEST, group="OTHER")
    assert rows(browser) == [
        ["0", "$Default", "&lt;b&gt;tea&lt;/b&gt;", "7", "0", "3", "–"],
        ["0", "other", "–", "–", "3", "0", "–"],
        ["1", "Nobody reads it now."],
    ]


def test_who_left_is_gone_and_the_portals_own_peek_was_never_there(world: World, browser: Browser) -> None:
    reader = open_reader(world)
    open_reader(world, group="$portal")
    assert len(rows(browser)) == 2 and "$portal" not in browser.get("readers/orders").text
    world.ask(CloseReader(log_id(world), reader))
    assert rows(browser)[0] == ["0", "Nobody reads it now."]


def test_a_partition_whose_store_does_not_answer_says_so(world: World, browser: Browser) -> None:
    world.gates[0].refuse[AskReaders] = Refusal(STORE_OFFLINE, "the store is away")
    told = text_of(browser.get("readers/orders"))
    assert told.count("Its messaging store does not answer now.") == 2
    world.gates[0].refuse.clear()


def test_a_page_that_renews_itself_gets_the_table_alone(browser: Browser) -> None:
    part = browser.get("readers/orders?live=1", hx_request="true")
    assert "<html" not in part.text and part.text.lstrip().startswith('<div id="readers"')


def test_the_right_to_listen_is_not_enough(world: World) -> None:
    world.set_rule("reads", Rights.LISTEN, key="listen key")
    assert signed_in(world, "reads", "listen key").get("readers/orders").status == 403
