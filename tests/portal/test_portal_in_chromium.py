"""The portal in a real browser, against a running service: what people do with it, by mouse and by keyboard.

Where no Chromium is installed these tests are left out, and a notice says so (Debian: `apt-get install chromium`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")

from hubweir.namespace.capture_description import CaptureDescription  # noqa: E402
from hubweir.namespace.queue_description import QueueDescription  # noqa: E402
from hubweir.namespace.rights import Rights  # noqa: E402
from hubweir.namespace.storage_settings import StorageSettings  # noqa: E402
from hubweir.namespace.subscription_description import SubscriptionDescription  # noqa: E402
from hubweir.namespace.topic_description import TopicDescription  # noqa: E402
from hubweir.portal import avro_reading  # noqa: E402
from hubweir.portal.avro_reading import AvroLimits  # noqa: E402
from hubweir.portal.tests.avro_files import orders  # noqa: E402
from hubweir.testing.running_namespace import RunningNamespace, running_namespace  # noqa: E402
from tests.portal.chromium import Person, chromium, running_chromium  # noqa: E402
from tests.workers.notices import notice  # noqa: E402

KEY = "SAS_KEY_VALUE"
# Every page that is there with the entities of the fixture.
PAGES = (
    "", "event-hubs", "queues", "topics", "create-event-hub", "create-queue", "create-topic",
    "create-subscription/news", "entity/orders", "entity/kitchen", "entity/news", "settings/orders",
    "settings/kitchen", "delete/kitchen", "consumer-groups/orders", "capture/orders", "connect/orders",
    "connect/kitchen", "entity-policies/orders", "policies", "policy?policy=RootManageSharedAccessKey", "scale",
    "alarms", "queues?search=zebra", "nowhere", "events/orders", "messages/kitchen",
    "messages/kitchen?part=dead-letters", "send/orders", "send/kitchen", "readers/orders", "charts",
    "entity-charts/kitchen", "events/orders?follow=on", "entity/news/Subscriptions/all",
    "rules/news/Subscriptions/all", "rule/news/Subscriptions/all", "rule/news/Subscriptions/all?rule=$Default",
    "messages/news/Subscriptions/all", "connections", "events/orders?view=avro",
)  # fmt: skip
# In which each page is looked at: whether the system is light or dark, and the pixels of the window's width.
LOOKS = (("light", 360), ("light", 1280), ("dark", 1280))
CHARTS = "figure.chart, table[data-chart]"


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with pytest.MonkeyPatch.context() as patch, running_namespace(stores=2) as namespace:
        # A machine under load needs many times the time that a page has.
        patch.setattr(avro_reading, "LIMITS", AvroLimits(page_ms=100_000))
        namespace.create_event_hub("orders", partition_count=4, capture=CaptureDescription())
        namespace.create(QueueDescription("kitchen", storage=StorageSettings(is_partitioned=True)))
        namespace.create(TopicDescription("news"))
        namespace.create(SubscriptionDescription("news/Subscriptions/all"))
        yield namespace


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[playwright.Browser]:
    executable = chromium()
    if executable is None:
        line = "no Chromium is installed: tests/portal is NOT run (Debian: apt-get install chromium)"
        notice(request.config, "the portal in a browser", line)
        pytest.skip(line)
    with running_chromium(executable) as browser:
        yield browser


@pytest.fixture(scope="module")
def context(browser: playwright.Browser) -> playwright.BrowserContext:
    """It may be shared: a test has a tab of its own, and leaves no cookies. What stays is the cache of a browser."""
    return browser.new_context()


@pytest.fixture
def person(namespace: RunningNamespace, context: playwright.BrowserContext) -> Iterator[Person]:
    person = Person(context, f"http://{namespace.host}:{namespace.port}")
    yield person
    person.leave()
    assert person.offences == []


def text(person: Person) -> str:
    return str(person.page.inner_text("main"))


def test_somebody_signs_in_makes_a_hub_changes_and_deletes_it(person: Person) -> None:
    person.sign_in("wrong key")
    assert "not right" in text(person)
    person.sign_in(KEY)
    person.page.get_by_role("link", name="Create an event hub").click()
    person.page.fill("#field-name", "flights")
    person.page.fill("#field-partition_count", "many")
    person.press("Create")
    assert "must be a whole number" in text(person) and person.page.input_value("#field-name") == "flights"
    person.page.fill("#field-partition_count", "2")
    person.press("Create")
    assert "It is created." in text(person) and person.page.url.endswith("/portal/entity/flights?notice=created")
    person.page.get_by_role("link", name="Settings").click()
    person.page.fill("#field-retention", "3 days")
    person.press("Save")
    assert "3 days" in text(person)
    person.page.get_by_role("link", name="Settings").click()
    person.page.get_by_role("link", name="Delete …").click()
    person.page.fill("#confirmed", "flights")
    person.press("Delete")
    assert "It is deleted." in text(person)
    person.press("Sign out")
    assert "You are signed out." in text(person)


def test_a_list_is_searched_while_somebody_types(person: Person, namespace: RunningNamespace) -> None:
    for number in range(3):
        namespace.create_queue(f"searched-{number}")
    person.sign_in(KEY)
    page = person.open("queues")
    page.get_by_role("searchbox").press_sequentially("SEARCHED-1", delay=10)
    page.get_by_role("link", name="searched-0").wait_for(state="detached")
    assert page.get_by_role("link", name="searched-1").is_visible()
    assert not page.get_by_role("link", name="kitchen").is_visible()


def test_counts_renew_themselves(person: Person, namespace: RunningNamespace) -> None:
    from azure.servicebus import ServiceBusClient, ServiceBusMessage

    person.sign_in(KEY)
    page = person.open("entity/kitchen")
    assert page.locator(".card").first.inner_text().split() == ["0", "Active", "messages"]
    with (
        ServiceBusClient.from_connection_string(namespace.connection_string()) as client,
        client.get_queue_sender("kitchen") as sender,
    ):
        sender.send_messages([ServiceBusMessage("tea"), ServiceBusMessage("coffee")])
    page.locator(".card .figure").first.get_by_text("2", exact=True).wait_for()
    assert page.locator(".card").first.inner_text().split() == ["2", "Active", "messages"]


def test_keys_are_shown_once_asked_and_renewed(person: Person, browser: playwright.Browser) -> None:
    person.sign_in(KEY)
    page = person.open("policies")
    page.fill("#name", "sender")
    page.get_by_label("Send").check()
    person.press("Add")
    page.get_by_role("link", name="sender").click()
    assert "SharedAccessKey=" not in page.content()
    person.press("Show keys and connection strings")
    before = page.input_value("#key-primary")
    assert len(before) == 44 and page.input_value("#key-primary-plain").startswith("Endpoint=sb://127.0.0.1:")
    person.press("Renew primary key")
    page.wait_for_load_state()
    assert page.input_value("#key-primary") != before
    other = Person(browser.new_context(), person.origin)
    other.sign_in(page.input_value("#key-primary"), "sender")
    assert "Open an entity" in text(other)
    person.press("Renew primary key")  # which ends the other's session
    page.wait_for_load_state()
    other.open("")
    assert "Your session is over" in text(other)
    other.leave()
    assert other.offences == []


def test_units_are_changed_and_drawn(person: Person, namespace: RunningNamespace) -> None:
    person.sign_in(KEY)
    page = person.open("scale")
    page.fill("#units", "4")
    page.check("#inflates")
    page.fill("#maximum", "2")
    person.press("Save")
    assert "That did not work." in text(person)
    page.fill("#maximum", "8")
    person.press("Save")
    assert "saved" in text(person) and "4.0 MB or 4,000 events a second" in text(person)
    assert namespace.service.gateway.namespace.description.units.maximum == 8
    page.fill("#units", "0")
    page.uncheck("#inflates")
    person.press("Save")
    assert namespace.service.gateway.namespace.description.units.held == 0


def test_capture_is_switched_on(person: Person, namespace: RunningNamespace) -> None:
    person.sign_in(KEY)
    page = person.open("capture/orders")
    page.get_by_label("Capture", exact=True).check()
    page.fill("#field-minutes", "1")
    person.press("Save")
    assert page.get_by_text("Running").count() == 4
    capture = namespace.service.gateway.management.hub("orders").capture
    assert capture is not None and capture.enabled and capture.interval_s == 60


def test_an_event_is_sent_and_looked_at(person: Person) -> None:
    person.sign_in(KEY)
    page = person.open("send/orders")
    page.fill("#body", '{"tea": "<b>2</b>"}')
    page.fill("#properties", "table: 7")
    page.select_option("#partition", "2")
    person.press("Send")
    assert "It is stored." in text(person)
    page.get_by_role("link", name="Data explorer").click()
    page.select_option("#partition", "2")
    person.press("Peek")
    page.locator("summary").first.click()
    assert page.get_by_label("Body", exact=True).inner_text() == '{\n  "tea": "<b>2</b>"\n}'
    assert "table" in text(person)


def test_events_are_followed_live_and_the_oldest_leave_the_page(person: Person, namespace: RunningNamespace) -> None:
    from azure.eventhub import EventData, EventHubProducerClient

    namespace.create_event_hub("followed", partition_count=1)
    person.sign_in(KEY)
    page = person.open("events/followed")
    page.get_by_role("link", name="Follow live").click()
    assert "This page follows partition 0" in text(person)
    connection = namespace.connection_string()
    with EventHubProducerClient.from_connection_string(connection, eventhub_name="followed") as producer:
        producer.send_event(EventData("<i>tea</i>"))
        page.locator(".sequence", has_text="0").first.wait_for()
        assert page.locator(".preview").first.inner_text() == "<i>tea</i>"
        producer.send_event(EventData("coffee"))
        page.locator(".preview", has_text="coffee").wait_for()
    assert [each.inner_text() for each in page.locator(".sequence").all()] == ["0", "1"]
    page.evaluate("document.querySelector('[data-longest]').dataset.longest = '1'")
    with EventHubProducerClient.from_connection_string(connection, eventhub_name="followed") as producer:
        producer.send_event(EventData("milk"))
    page.locator(".preview", has_text="milk").wait_for()
    assert [each.inner_text() for each in page.locator(".sequence").all()] == ["2"]


def test_records_of_an_avro_body_are_read_when_somebody_picks_that_view(
    person: Person, namespace: RunningNamespace
) -> None:
    from azure.eventhub import EventData, EventHubProducerClient

    namespace.create_event_hub("avro", partition_count=1)
    connection = namespace.connection_string()
    with EventHubProducerClient.from_connection_string(connection, eventhub_name="avro") as producer:
        producer.send_batch([EventData(orders("deflate")), EventData(b"\xc3\x01" + bytes(8) + b"tea")])
    person.sign_in(KEY)
    page = person.open("events/avro")
    page.locator("summary").first.click()
    assert "An Avro file: choose the view Avro" in text(person)
    page.select_option("#view", "avro")
    person.press("Peek")
    page.locator(".preview", has_text='"dish": "tea"').wait_for()
    page.locator("summary").first.click()
    assert '"table": 7\n}\n{\n  "dish": "café"' in page.get_by_label("Body", exact=True).first.inner_text()
    assert "Records of the schema record shop.Order, codec deflate." in text(person)
    page.locator("summary").nth(1).click()
    assert "whose fingerprint (CRC-64-AVRO) is 0000000000000000." in text(person)


def test_a_body_is_downloaded_as_it_was_sent(person: Person, namespace: RunningNamespace) -> None:
    namespace.create_queue("downloaded")
    person.sign_in(KEY)
    page = person.open("send/downloaded")
    page.fill("#body", "<script>alert(1)</script>")
    person.press("Send")
    page = person.open("messages/downloaded")
    page.locator("summary").first.click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the body").click()
    assert download.value.path().read_bytes() == b"<script>alert(1)</script>"
    assert download.value.suggested_filename == "downloaded-1.bin"


def test_a_filter_is_made_and_the_fields_of_its_sort_alone_are_shown(
    person: Person, namespace: RunningNamespace
) -> None:
    person.sign_in(KEY)
    page = person.open("rule/news/Subscriptions/all")
    assert page.locator("#expression").is_visible() and not page.locator("#label").is_visible()
    page.select_option("#field-kind", "correlation")
    assert page.locator("#label").is_visible() and not page.locator("#expression").is_visible()
    page.fill("#name", "teas")
    page.fill("#label", "tea")
    person.press("Save")
    assert "The filter is saved." in text(person) and "label = 'tea'" in text(person)
    page.get_by_role("button", name="Delete teas").click()
    page.wait_for_load_state()
    assert "The filter is deleted." in text(person)


def test_rates_are_drawn_while_the_page_is_open(person: Person) -> None:
    person.sign_in(KEY)
    page = person.open("charts")
    page.locator("figure.chart canvas").first.wait_for()
    drawn = "document.querySelectorAll('figure.chart canvas').length"
    assert page.evaluate(drawn) == 4
    before = page.locator("#measures").get_attribute("data-ms")
    page.locator(f'#measures:not([data-ms="{before}"])').wait_for()
    assert page.evaluate(drawn) == 4, "it is the same charts that grow"
    assert "Messages in" in text(person) and "Commit" in text(person)


def test_who_reads_is_seen(person: Person, namespace: RunningNamespace) -> None:
    person.sign_in(KEY)
    person.open("readers/orders")
    assert text(person).count("Nobody reads it now.") == 4


def test_messages_are_sent_dead_lettered_sent_again_and_purged(person: Person, namespace: RunningNamespace) -> None:
    namespace.create_queue("explored")
    person.sign_in(KEY)
    for body in ("one", "two"):
        person.open("send/explored")
        person.page.fill("#body", body)
        person.press("Send")
    page = person.open("messages/explored")
    page.fill("#reason", "burnt")
    person.press("Dead-letter")
    assert "1 moved to the dead letters." in text(person)
    page = person.open("messages/explored?part=dead-letters")
    page.locator("summary").first.click()
    assert "burnt" in text(person)
    person.press("Resubmit")
    assert "1 sent again." in text(person)
    page = person.open("messages/explored")
    assert page.locator("summary").count() == 2
    page.check("#sure")
    person.press("Purge")
    assert "2 deleted." in text(person) and "No messages here" in text(person)


def test_who_may_send_alone_sees_and_can_do_nothing_else(person: Person, namespace: RunningNamespace) -> None:
    from hubweir.gateway.http.tests.service import Http

    Http(namespace).set_rule("orders", "only-send", Rights.SEND, "a key for sending")
    person.open("sign-in")
    person.page.fill("#rule", "only-send")
    person.page.fill("#secret", "a key for sending")
    person.page.get_by_text("The policy is of one entity").click()
    person.page.fill("#entity", "orders")
    person.press("Sign in")
    assert person.page.url.endswith("/portal/entity/orders")
    links = [each.inner_text() for each in person.page.get_by_role("link").all()]
    assert not {"Settings", "Capture", "Queues", "Shared access policies", "Consumer groups"} & set(links), links
    for page in (
        "settings/orders",
        "event-hubs",
        "entity/kitchen",
        "policies",
        "scale",
        "capture/orders",
        "events/orders",
    ):
        person.open(page)
        assert "Unauthorized access" in text(person), page


def test_it_works_by_keyboard_alone(person: Person) -> None:
    page = person.open("sign-in")
    page.wait_for_selector("input:focus")  # the field for the key has the focus, once the page has come
    page.keyboard.type(KEY)
    page.keyboard.press("Enter")
    page.wait_for_url("**/portal")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")
    page.keyboard.press("Enter")
    page.wait_for_url("**/portal/event-hubs")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate(outline) == "solid", "where the focus is, is seen"


def complaints(person: Person, pictures: Path) -> list[str]:
    """What is wrong with the page that is open in any of the looks; of each such look there is a picture.

    Its look is the style sheet's alone, so one visit shows all of them. A chart is drawn as its page finds the window
    when it comes, so a page with one comes anew for each.
    """
    found = []
    has_chart = person.page.locator(CHARTS).count() > 0
    for number, (scheme, width) in enumerate(LOOKS):
        person.see(scheme, width)
        if has_chart and number > 0:
            person.page.reload()
        here = person.violations()
        if person.overflow():
            here.append(f"{person.page.url}: {person.overflow()} px lie outside the window")
        if here:
            person.page.screenshot(path=str(pictures / f"{len(list(pictures.iterdir())):02}.png"), full_page=True)
        found += [f"{scheme}, {width} px: {each}" for each in here]
    person.see(*LOOKS[0])
    return found


@pytest.mark.timeout(300)
def test_no_page_has_a_serious_violation_or_lies_outside_the_window(person: Person, tmp_path: Path) -> None:
    """axe-core looks at every page in every look."""
    person.see(*LOOKS[0])
    person.open("sign-in")
    found = complaints(person, tmp_path)
    person.sign_in(KEY)
    for path in PAGES:
        person.open(path)
        found += complaints(person, tmp_path)
    assert found == []


def test_what_is_wrong_in_some_looks_alone_is_found_there(person: Person, tmp_path: Path) -> None:
    """The control arm: a style sheet with a fault of each sort."""
    page = person.open("sign-in")
    page.evaluate("document.adoptedStyleSheets = [new CSSStyleSheet()]")
    page.evaluate(
        "text => document.adoptedStyleSheets[0].replaceSync(text)",
        """
        @media (prefers-color-scheme: dark) { h1 { color: #333 } }
        @media (max-width: 400px) { h1 { color: #ddd; width: 400px } }
        @media (min-width: 1280px) { h1 { width: 1300px } }
        """,
    )
    said = complaints(person, tmp_path)
    found = [[line for line in said if line.startswith(f"{scheme}, {width} px: ")] for scheme, width in LOOKS]
    assert [len(lines) for lines in found] == [2, 1, 2], said
    assert all("lie outside" in lines[-1] for lines in found)
    assert all("color-contrast" in lines[0] for lines in (found[0], found[2]))
    assert len(list(tmp_path.iterdir())) == len(LOOKS)


def test_a_page_with_a_chart_comes_anew_for_each_look(person: Person, tmp_path: Path) -> None:
    """A control arm, too: what is wrong only where the page comes into a window so wide is found."""
    person.sign_in(KEY)
    person.page.add_init_script(
        "addEventListener('DOMContentLoaded', () => {"
        " if (innerWidth === 1280) document.querySelector('h1').style.width = '1300px' })"
    )
    person.see(*LOOKS[0])
    person.open("charts")
    found = complaints(person, tmp_path)
    assert [line.split(": ")[0] for line in found] == ["light, 1280 px", "dark, 1280 px"], found


def test_planted_offences_are_found(person: Person, namespace: RunningNamespace) -> None:
    """The control arm: a picture without words, grey on grey, a script within the page, a request elsewhere."""
    page = person.open("sign-in")
    page.evaluate("document.querySelector('main').innerHTML += '<img src=\"/portal/static/icon.svg\">'")
    page.evaluate("document.querySelector('h1').style.color = '#ddd'")
    assert {line.split(": ")[1] for line in person.violations()} >= {"image-alt", "color-contrast"}
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.x = 1'}))"
    )
    assert page.evaluate("window.x") is None, "the policy stops a script within the page"
    page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    page.evaluate("document.body.style.width = '5000px'")
    assert person.overflow() > 3_000
    kinds = " ".join(person.offences)
    assert "Content Security Policy" in kinds and "console: " in kinds
    person.offences.clear()
