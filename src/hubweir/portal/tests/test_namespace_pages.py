"""Scale, capture, policies with keys, connection strings, alarms: what a form changes, and what it must not show."""

import re
from html import unescape

import pytest

from hubweir.alarms import DISK_FULL
from hubweir.broker.commands.partition import AppendEvents
from hubweir.gateway.amqp.tests.further_namespace import further_namespace
from hubweir.gateway.amqp.tests.world import KEY, ROOT, World
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.host_names import divide
from hubweir.namespace.namespace_description import UnitsDescription
from hubweir.namespace.rights import Rights
from hubweir.portal.tests.browser import Browser, signed_in, text_of

CAPTURE = {
    "enabled": "on", "minutes": "2", "megabytes": "20", "destination": CaptureDestination.LOCAL_FOLDER.value,
    "container": "", "storage_account": "", "format": CaptureDescription().archive_name_format,
}  # fmt: skip


@pytest.fixture
def world() -> World:
    return World(hubs={"orders": 2})


@pytest.fixture
def browser(world: World) -> Browser:
    return signed_in(world)


def units(world: World) -> UnitsDescription:
    return world.namespace.description.units


# Scale


def test_units_are_held_with_auto_inflate_and_switched_off(world: World, browser: Browser) -> None:
    told = text_of(browser.follow(browser.post("scale", {"units": "2", "inflates": "on", "maximum": "6"})))
    assert (units(world).held, units(world).maximum) == (2, 6)
    assert "2.0 MB or 2,000 events a second" in told and "4.0 MB or 8,192 events a second" in told
    browser.follow(browser.post("scale", {"units": "3", "maximum": "6"}))
    assert (units(world).held, units(world).maximum) == (3, 0), "auto-inflate was not ticked"
    browser.follow(browser.post("scale", {"units": "0", "maximum": ""}))
    assert units(world).held == 0


@pytest.mark.parametrize(
    ("fields", "told"),
    [({"units": "41"}, "it may hold 1 to 20, then 20 more at a time up to 100"),
     ({"units": "-1"}, "must be a whole number"),
     ({"units": "4", "inflates": "on", "maximum": "2"}, "That did not work"),
     ({"units": "4", "inflates": "on", "maximum": "0"}, "needs a maximum")],
)  # fmt: skip
def test_units_that_cannot_be_are_told(world: World, browser: Browser, fields: dict[str, str], told: str) -> None:
    answer = browser.post("scale", {"maximum": "", **fields})
    assert answer.status == 400 and told in text_of(answer) and f'value="{fields["units"]}"' in answer.text
    assert units(world) == UnitsDescription()


def test_units_beyond_what_partitions_can_use_are_warned_of(browser: Browser) -> None:
    told = text_of(browser.follow(browser.post("scale", {"units": "5", "maximum": ""})))
    assert "Held now" in told and "partition" in told.partition("Throughput units")[0]


def test_what_this_hour_used_is_shown_and_renewed(world: World, browser: Browser) -> None:
    browser.post("scale", {"units": "1", "maximum": ""})
    place = world.gateway.directory.partition("orders", "0")
    admission = world.gateway.units.admission
    admission.admit(2_000, 7, world.env.monotonic_ms())
    assert "7 Events in, this hour" in text_of(browser.get("usage-now", hx_request="true"))
    assert 'data-value="7"' in browser.get("scale").text
    assert isinstance(place.store(bytearray(), 0, 0), AppendEvents)


# Capture


def test_capture_is_switched_on_and_off(world: World, browser: Browser) -> None:
    assert "Capture is off" in text_of(browser.get("capture/orders"))
    told = text_of(browser.post("capture/orders", CAPTURE))
    assert "This broker has no place for captured files" in told, "brokers of this world capture nothing, and say so"
    capture = world.gateway.management.hub("orders").capture
    assert capture == CaptureDescription(enabled=True, interval_s=120, size_limit_bytes=20 * 1024 * 1024)
    assert "Capture is off" not in text_of(browser.get("capture/orders"))
    browser.follow(browser.post("capture/orders", {**CAPTURE, "enabled": "", "skip_empty": "on"}))
    capture = world.gateway.management.hub("orders").capture
    assert capture is not None and not capture.enabled and capture.skip_empty_archives


@pytest.mark.parametrize(
    ("change", "told"),
    [({"minutes": "16"}, "60 to 900 are allowed"), ({"megabytes": "5"}, "10485760"), ({"minutes": "x"}, "whole number"),
     ({"format": "{Namespace}"}, "nine tokens"), ({"destination": "moon"}, "Destination must be one of"),
     ({"destination": CaptureDestination.AZURE_BLOCK_BLOB.value, "container": "abc"}, "needs a storage account")],
)  # fmt: skip
def test_a_capture_that_cannot_be_is_told(world: World, browser: Browser, change: dict[str, str], told: str) -> None:
    answer = browser.post("capture/orders", {**CAPTURE, **change})
    assert answer.status == 400 and told in text_of(answer)
    assert world.gateway.management.hub("orders").capture is None


def test_a_window_of_odd_length_stays_until_it_is_changed(world: World, browser: Browser) -> None:
    world.create(EventHubDescription("odd", 1, capture=CaptureDescription(interval_s=90, size_limit_bytes=11_000_000)))
    page = browser.get("capture/odd")
    shown = {name: unescape(found) for name, found in re.findall(r'name="(\w+)" value="([^"]*)"', page.text)}
    assert shown["minutes"] == "1.5"
    browser.follow(
        browser.post("capture/odd", {**CAPTURE, "enabled": "", "minutes": "1.5", "megabytes": shown["megabytes"]})
    )
    capture = world.gateway.management.hub("odd").capture
    assert capture is not None and (capture.interval_s, capture.size_limit_bytes) == (90, 11_000_000)


# Policies


def test_a_policy_is_made_and_its_keys_are_shown_to_a_form_alone(world: World, browser: Browser) -> None:
    browser.follow(browser.post("policies", {"name": "reader", "listen": "on"}))
    rule = world.gateway.rules.rule(None, "reader")
    key = rule.primary.reveal()
    assert rule.rights is Rights.LISTEN and len(key) == 44
    for page in ("policies", "policy?policy=reader", "entity-policies/orders", ""):
        assert key not in unescape(browser.get(page).text)
    shown = unescape(browser.post("policy", {"policy": "reader"}).text)
    assert key in shown and rule.secondary.reveal() in shown
    strings = [ConnectionString.parse(text) for text in re.findall(r'value="(Endpoint=[^"]*)"', shown)]
    assert {(each.host, each.tcp_port, each.key_name) for each in strings} == {
        ("localhost", 5672, "reader"), ("localhost", 5672, "reader"),
    }  # fmt: skip
    assert [each.emulator for each in strings] == [False, True, False, True]


def test_manage_comes_with_the_other_two(world: World, browser: Browser) -> None:
    browser.follow(browser.post("policies", {"name": "all", "manage": "on"}))
    assert world.gateway.rules.rule(None, "all").rights is Rights.ALL
    browser.follow(browser.post("rights", {"policy": "all", "send": "on"}))
    assert world.gateway.rules.rule(None, "all").rights is Rights.SEND
    refused = browser.post("rights", {"policy": "all"})
    assert refused.status == 400 and "at least one right" in text_of(refused)


def test_a_policy_of_an_entity_is_of_that_alone(world: World, browser: Browser) -> None:
    assert "No policies of its own" in text_of(browser.get("entity-policies/orders"))
    browser.follow(browser.post("entity-policies/orders", {"name": "one", "send": "on"}))
    assert [rule.name for rule in world.gateway.rules.rules("orders")] == ["one"]
    shown = unescape(browser.post("entity-policy/orders", {"policy": "one"}).text)
    strings = re.findall(r'value="(Endpoint=[^"]*)"', shown)
    assert ConnectionString.parse(strings[0]).entity_path == "orders"
    browser.follow(browser.post("entity-delete-policy/orders", {"policy": "one"}))
    assert world.gateway.rules.rules("orders") == ()


def test_a_key_is_renewed_and_the_session_that_stood_on_it_ends(world: World, browser: Browser) -> None:
    browser.post("policies", {"name": "second", "manage": "on"})
    key = world.gateway.rules.rule(None, "second").primary.reveal()
    other = signed_in(world, "second", key)
    shown = unescape(other.post("renew-key", {"policy": "second", "key": "primary"}).text)
    renewed = world.gateway.rules.rule(None, "second").primary.reveal()
    assert renewed != key and renewed in shown
    assert other.get("queues").status == 303 and browser.get("queues").status == 200
    assert browser.post("renew-key", {"policy": "second", "key": "third"}).status == 400


def test_the_rule_of_the_settings_keeps_its_primary_key_and_rights() -> None:
    world = World(settings=GatewaySettings(settings_rule=ROOT))
    browser = signed_in(world)
    for page, fields in (("renew-key", {"key": "primary"}), ("rights", {"send": "on"}), ("delete-policy", {})):
        refused = browser.post(page, {"policy": ROOT, **fields})
        assert refused.status == 400 and "A start of the service gives the rule" in text_of(refused), page
    assert world.gateway.rules.rule(None, ROOT).primary.reveal() == KEY


def test_a_policy_that_is_taken_or_absent_is_told(browser: Browser) -> None:
    browser.post("policies", {"name": "one", "send": "on"})
    assert browser.post("policies", {"name": "ONE", "send": "on"}).status == 409
    assert browser.get("policy?policy=none").status == 404
    assert browser.post("policy", {"policy": "none"}).status == 404
    assert browser.get("entity-policy/none?policy=one").status == 404


# Connect and alarms


@pytest.mark.parametrize(("host", "endpoint"), [("localhost:7000", "sb://localhost:7000"), ("localhost:5671", "")])
def test_code_to_connect_names_the_entity_the_place_and_no_key(world: World, host: str, endpoint: str) -> None:
    browser = Browser(world, host=host)
    browser.follow(browser.sign_in())
    page = unescape(browser.get("connect/orders").text)
    assert 'eventhub_name="orders"' in page and KEY not in page
    assert (f'custom_endpoint_address="{endpoint}"' in page) is bool(endpoint)


def test_who_may_send_alone_is_shown_how_to_connect_and_no_policies(world: World) -> None:
    world.set_rule("less", Rights.SEND, key="less key")
    page = signed_in(world, "less", "less key").get("connect/orders")
    assert page.status == 200 and "policies" not in page.text and "less key" not in page.text


def test_alarms_are_told_while_they_stand(world: World, browser: Browser) -> None:
    assert "No alarm stands" in text_of(browser.get("alarms"))
    world.process.alarms.begin(DISK_FULL, "store store-0", "<b>no space</b> is left")
    for page in ("alarms", ""):
        told = browser.get(page)
        assert "store store-0" in text_of(told) and "<b>no space" not in told.text
    assert "disk-full" in text_of(browser.get("alarms", hx_request="true"))
    world.process.alarms.end(DISK_FULL, "store store-0")
    assert "No alarm stands" in text_of(browser.get("alarms"))


# Namespaces


def test_namespaces_are_listed_for_the_managers_of_the_default_one_and_others_see_their_own(world: World) -> None:
    hosts = divide({"hubweir": (), "shop": ("shop.example",)})
    world.gateway.lead_here(hosts["hubweir"])
    further_namespace(world, "shop", hosts["shop"], key="shop's key")
    told = text_of(signed_in(world).get("namespaces"))
    assert "hubweir (default)" in told and "shop, shop.example, shop.localhost" in told
    own = text_of(signed_in(world, key="shop's key").get("namespaces"))
    assert "shop.example" in own and "hubweir (default)" not in own
