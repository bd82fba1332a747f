"""Explorers: what was sent is found again, by every way to ask for it; what takes messages away does what it says."""

import pytest

from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.reader import CloseReader, OpenReader
from hubweir.errors import STORE_OFFLINE
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http.tests.world_requests import ask_all
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.portal.tests.browser import Browser, signed_in, text_of


@pytest.fixture
def world() -> World:
    world = World(hubs={"orders": 2}, stores=2)
    world.create(QueueDescription("kitchen"))
    return world


@pytest.fixture
def browser(world: World) -> Browser:
    return signed_in(world)


def send(browser: Browser, entity: str, body: str, **fields: str) -> None:
    answer = browser.post(f"send/{entity}", {"body": body, **fields})
    assert answer.status == 200 and "It is stored." in text_of(answer), text_of(answer)


def events(browser: Browser, query: str) -> list[str]:
    """The sequence numbers of the events that a page shows."""
    page = browser.get(f"events/orders?{query}").text
    return [part.partition("<")[0] for part in page.split('<span class="sequence">')[1:]]


# Events


def test_an_event_is_sent_with_its_properties_and_found_again(browser: Browser) -> None:
    send(
        browser,
        "orders",
        '{"tea": 2}\r\n',
        partition="1",
        properties="colour: red\n\nn:7",
        content_type="application/json",
    )
    told = text_of(browser.get("events/orders?partition=1"))
    assert '"tea": 2' in told and "colour red" in told and "n 7" in told and "content-type application/json" in told
    assert "11 bytes, shown as json" in told, "the line ends as it was typed"
    assert "No events here" in text_of(browser.get("events/orders?partition=0"))
    assert "00000 7b 22 74 65 61" in text_of(browser.get("events/orders?partition=1&view=hex"))


def test_events_of_a_key_go_to_its_partition(world: World, browser: Browser) -> None:
    for _ in range(2):
        send(browser, "orders", "x", partition_key="table-7")
    partition = world.gateway.router("orders").partition_of_key(b"table-7")
    assert len(events(browser, f"partition={partition}")) == 2
    assert "table-7" in text_of(browser.get(f"events/orders?partition={partition}"))
    both = browser.post("send/orders", {"body": "x", "partition": "0", "partition_key": "k"})
    assert both.status == 400 and "leave one of them out" in text_of(both)


def test_events_are_found_from_either_end_a_number_and_a_time(world: World, browser: Browser) -> None:
    for number in range(30):
        if number == 20:
            world.run_for(10_000)
        send(browser, "orders", f"event {number}", partition="0")
    numbers = [str(number) for number in range(30)]
    assert events(browser, "") == numbers[5:], "the newest 25"
    assert events(browser, "start=newest&count=10") == numbers[20:]
    assert events(browser, "start=oldest&count=10") == numbers[:10]
    assert events(browser, "start=sequence&at=7&count=10") == numbers[7:17]
    assert events(browser, "start=sequence&at=29") == ["29"]
    assert events(browser, "start=sequence&at=30") == []
    page = browser.get("events/orders?start=oldest&count=10").text
    assert "start=sequence&amp;at=10&amp;count=10" in page, "the next page goes on behind"
    from hubweir.namespace.error_text import timestamp

    later = timestamp(world.env.now_ms() - 5_000)
    assert events(browser, f"start=time&at={later}") == numbers[20:]


@pytest.mark.parametrize(
    ("query", "told"),
    [("partition=9", "partition"), ("start=sequence&at=x", "must be a whole number"),
     ("start=time&at=noon", "Write a time"), ("start=middle", "Events begin at"), ("count=1000000", "at a time"),
     ("view=xml", "at a time")],
)  # fmt: skip
def test_what_cannot_be_asked_is_told(browser: Browser, query: str, told: str) -> None:
    answer = browser.get(f"events/orders?{query}")
    assert answer.status == 400 and told in text_of(answer)


def test_what_stands_before_the_position_in_a_stored_batch_is_not_shown(world: World, browser: Browser) -> None:
    batch = b'[{"Body": "zero"}, {"Body": "one"}, {"Body": "two"}]'
    media = ((b"content-type", b"application/vnd.microsoft.servicebus.json"),)
    (answer,) = ask_all(world, "POST", "/orders/partitions/0/messages", batch, headers=media)
    assert answer is not None and answer.status == 201
    assert events(browser, "start=sequence&at=1") == ["1", "2"]
    assert events(browser, "start=oldest") == ["0", "1", "2"]


def test_a_peek_leaves_no_reader_behind_and_disturbs_none(world: World, browser: Browser) -> None:
    send(browser, "orders", "x", partition="0")
    before = len(world.gates[0].sent(OpenReader))
    for _ in range(8):  # a group has five readers of a partition at most
        assert events(browser, "partition=0") == ["0"]
    assert len(world.gates[0].sent(OpenReader)) == before + 8 == len(world.gates[0].sent(CloseReader)) + before
    assert {command.consumer_group for command in world.gates[0].sent(OpenReader)} == {"$portal"}


def test_a_body_is_no_markup(browser: Browser) -> None:
    send(browser, "orders", "<script>alert(1)</script>", partition="0", properties="<b>: <i>", partition_key="")
    page = browser.get("events/orders?partition=0").text
    assert "<script>alert" not in page and "<i>" not in page and "&lt;script&gt;alert(1)" in page


# Messages


def queue_state(world: World, name: str = "kitchen") -> tuple[int, int]:
    """Active and dead messages of a queue."""
    from functools import partial

    from hubweir.gateway.entity_counts import ask_counts

    entity = world.namespace.get(name, QueueDescription)
    counts = world.wait(lambda done: partial(ask_counts, world.env, world.gateway.directory.fragments(entity))(done))
    return counts.active, counts.dead_lettered


def test_a_message_is_sent_with_all_it_says_and_peeked_at(world: World, browser: Browser) -> None:
    send(
        browser,
        "kitchen",
        "two teas",
        message_id="m-1",
        subject="tea",
        session_id="s",
        properties="table: 7",
        time_to_live="1 hour",
    )
    for _ in range(2):
        told = text_of(browser.get("messages/kitchen"))
        assert "two teas" in told and "message-id m-1" in told and "subject tea" in told and "table 7" in told
    assert queue_state(world) == (1, 0)
    assert "No messages here" in text_of(browser.get("messages/kitchen?part=dead-letters"))


def test_a_scheduled_message_waits(world: World, browser: Browser) -> None:
    send(browser, "kitchen", "later", scheduled="2999-01-01T00:00")
    assert "Scheduled" in text_of(browser.get("messages/kitchen")) and queue_state(world) == (0, 0)
    refused = browser.post("send/kitchen", {"body": "x", "scheduled": "soon"})
    assert refused.status == 400 and "Write a time" in text_of(refused)


def test_the_oldest_become_dead_letters_with_a_reason_and_are_sent_again(world: World, browser: Browser) -> None:
    for number in range(3):
        send(browser, "kitchen", f"message {number}", message_id=f"m-{number}")
    page = browser.follow(
        browser.post("dead-letter/kitchen", {"count": "2", "reason": "burnt", "text": "black as coal"})
    )
    assert "2 moved to the dead letters." in text_of(page) and queue_state(world) == (1, 2)
    told = text_of(browser.get("messages/kitchen?part=dead-letters"))
    assert "DeadLetterReason burnt" in told and "DeadLetterErrorDescription black as coal" in told and "m-0" in told
    page = browser.follow(browser.post("resubmit/kitchen", {"count": "5", "part": "dead-letters"}))
    assert "2 sent again." in text_of(page) and queue_state(world) == (3, 0)
    told = text_of(browser.get("messages/kitchen"))
    assert "DeadLetterReason" not in told and "m-0" in told


def test_a_dead_letter_whose_copy_is_not_stored_stays_and_is_free(world: World, browser: Browser) -> None:
    send(browser, "kitchen", "message")
    browser.post("dead-letter/kitchen", {"count": "1"})
    for gate in world.gates:
        gate.refuse[EnqueueMessages] = Refusal(STORE_OFFLINE, "the store is away")
    refused = browser.post("resubmit/kitchen", {"count": "1", "part": "dead-letters"})
    assert refused.status == 503 and "the store is away" in text_of(refused) and queue_state(world) == (0, 1)
    for gate in world.gates:
        gate.refuse.clear()
    browser.follow(browser.post("resubmit/kitchen", {"count": "1", "part": "dead-letters"}))
    assert queue_state(world) == (1, 0)


def test_a_purge_asks_first_and_takes_the_part_that_it_names(world: World, browser: Browser) -> None:
    for number in range(3):
        send(browser, "kitchen", f"message {number}")
    browser.post("dead-letter/kitchen", {"count": "1"})
    assert browser.post("purge/kitchen", {"part": "messages"}).status == 400 and queue_state(world) == (2, 1)
    page = browser.follow(browser.post("purge/kitchen", {"part": "messages", "sure": "on"}))
    assert "2 deleted." in text_of(page) and queue_state(world) == (0, 1)
    browser.follow(browser.post("purge/kitchen", {"part": "dead-letters", "sure": "on"}))
    assert queue_state(world) == (0, 0)


def test_all_fragments_of_a_partitioned_queue_take_part(world: World, browser: Browser) -> None:
    world.create(QueueDescription("spread", storage=StorageSettings(is_partitioned=True)))
    for number in range(12):
        send(browser, "spread", f"message {number}", partition_key=f"key {number}")
    told = text_of(browser.get("messages/spread"))
    assert all(f"message {number}" in told for number in range(12))
    browser.follow(browser.post("dead-letter/spread", {"count": "7"}))
    assert queue_state(world, "spread") == (5, 7)
    browser.follow(browser.post("resubmit/spread", {"count": "100"}))
    assert queue_state(world, "spread") == (12, 0)
    browser.follow(browser.post("purge/spread", {"part": "messages", "sure": "on"}))
    assert queue_state(world, "spread") == (0, 0)


def test_messages_come_in_pages(browser: Browser) -> None:
    for number in range(30):
        send(browser, "kitchen", f"message {number}")
    first = browser.get("messages/kitchen")
    assert first.text.count('class="sequence"') == 25 and "from=26" in first.text
    assert browser.get("messages/kitchen?from=26").text.count('class="sequence"') == 5


def test_a_subscription_is_explored_and_its_dead_letters_go_to_its_topic_again(world: World, browser: Browser) -> None:
    world.create(TopicDescription("news"))
    world.create(SubscriptionDescription("news/Subscriptions/all"))
    send(browser, "news", "extra")
    world.run_for(1_000)  # in which the topic hands it on
    where = "news/Subscriptions/all"
    assert "extra" in text_of(browser.get(f"messages/{where}"))
    browser.follow(browser.post(f"dead-letter/{where}", {"count": "1"}))
    page = browser.follow(browser.post(f"resubmit/{where}", {"count": "1"}))
    world.run_for(1_000)
    assert "1 sent again." in text_of(page) and "extra" in text_of(browser.get(f"messages/{where}"))
    assert browser.post(f"send/{where}", {"body": "x"}).status == 400
    assert browser.get("messages/news").status == 400 and browser.get("messages/orders").status == 404


def test_what_a_queue_refuses_is_told_and_moves_nothing(world: World, browser: Browser) -> None:
    world.create(QueueDescription("sessions", delivery=DeliverySettings(requires_session=True)))
    told = browser.post("send/sessions", {"body": "x"})
    assert told.status == 400 and "requires sessions" in text_of(told)
    send(browser, "sessions", "x", session_id="s")
    refused = browser.post("dead-letter/sessions", {"count": "1"})
    assert refused.status == 400 and "session" in text_of(refused).lower() and queue_state(world, "sessions") == (1, 0)
    world.create(QueueDescription("closed", availability=Availability.DISABLED))
    for page, fields in (
        ("send", {"body": "x"}),
        ("dead-letter", {"count": "1"}),
        ("purge", {"part": "messages", "sure": "on"}),
    ):
        assert browser.post(f"{page}/closed", fields).status == 403, page
    for count in ("0", "101", "x"):
        assert browser.post("dead-letter/kitchen", {"count": count}).status == 400


def test_rights_decide_over_looking_and_sending(world: World) -> None:
    world.set_rule("reads", Rights.LISTEN, key="listen key")
    world.set_rule("sends", Rights.SEND, key="send key")
    reader, sender = signed_in(world, "reads", "listen key"), signed_in(world, "sends", "send key")
    send(sender, "kitchen", "x")
    assert sender.get("messages/kitchen").status == 403 and sender.get("events/orders").status == 403
    assert sender.post("purge/kitchen", {"part": "messages", "sure": "on"}).status == 403
    assert reader.get("messages/kitchen").status == 200 and reader.get("send/kitchen").status == 403
    assert "Send the oldest again" not in text_of(reader.get("messages/kitchen?part=dead-letters"))
    reader.get("messages/kitchen")
    reader.post("dead-letter/kitchen", {"count": "1"})
    assert reader.post("resubmit/kitchen", {"count": "1"}).status == 403 and queue_state(world) == (0, 1)


@pytest.mark.parametrize("properties", ["no colon", ": x", "a: 1\na: 2", "\n".join(f"p{n}: x" for n in range(101))])
def test_properties_that_cannot_be_are_told_and_nothing_is_sent(
    world: World, browser: Browser, properties: str
) -> None:
    answer = browser.post("send/kitchen", {"body": "kept text", "properties": properties})
    assert answer.status == 400 and "kept text" in answer.text and queue_state(world) == (0, 0)
