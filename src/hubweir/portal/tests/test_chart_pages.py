"""Charts: what is counted is of whom may see it, and latencies are told as they were measured."""

import re

import pytest

from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http.open_metrics import ProcessSamples
from hubweir.metrics import INCOMING_MESSAGES, SEND_LATENCY, Samples
from hubweir.namespace.rights import Rights
from hubweir.portal.chart_pages import quantile_ms
from hubweir.portal.portal import Portal
from hubweir.portal.service_samples import KEPT_MS
from hubweir.portal.tests.browser import Browser, samples_of, signed_in, text_of


@pytest.fixture
def world() -> World:
    return World(hubs={"orders": 1, "bills": 1})


def totals(browser: Browser, page: str = "charts") -> dict[str, int]:
    text = browser.get(page).text
    return {key: int(value) for key, value in re.findall(r'data-total="([^"]+)" data-value="([0-9]+)"', text)}


def test_totals_are_of_the_namespace_and_of_an_entity_of_that_alone(world: World) -> None:
    browser = signed_in(world)
    for hub, count in (("orders", 2), ("bills", 1)):
        browser.get(f"send/{hub}")
        for _ in range(count):
            browser.post(f"send/{hub}", {"body": "tea"})
    assert totals(browser)["in"] == 3
    assert totals(browser, "entity-charts/orders")["in"] == 2 and totals(browser, "entity-charts/BILLS")["in"] == 1
    assert totals(browser)["bytes-in"] > 0


def test_a_page_that_renews_itself_gets_newer_figures_alone(world: World) -> None:
    browser = signed_in(world)
    first = browser.get("charts")
    assert '<figure class="chart" data-rates="in out">' in first.text and "charts.js" in first.text
    browser.get("send/orders")
    browser.post("send/orders", {"body": "tea"})
    world.run_for(KEPT_MS)
    part = browser.get("charts?live=1", hx_request="true")
    assert "<html" not in part.text and 'data-total="in" data-value="1"' in part.text
    moments = [int(re.findall(r'data-ms="([0-9]+)"', page.text)[0]) for page in (first, part)]
    assert moments[1] >= moments[0] + KEPT_MS


def test_processes_add_up_other_namespaces_do_not_and_one_that_is_away_is_named(world: World) -> None:
    async def three() -> list[ProcessSamples]:
        (own,) = await samples_of(world)
        other = Samples()
        other[INCOMING_MESSAGES]["hubweir", "orders"] += 40
        other[INCOMING_MESSAGES]["elsewhere", "orders"] += 500
        other.latencies[SEND_LATENCY] = world.counters.send
        return [own, ProcessSamples("1", other), ProcessSamples("2", None)]

    world.counters.send.buckets[10] = 99
    world.counters.send.buckets[20] = 1
    browser = Browser(world, portal=Portal(world.process, three))
    browser.follow(browser.sign_in())
    assert totals(browser)["in"] == 40
    told = text_of(browser.get("charts"))
    assert "Of 1 process nothing is known now: 2." in told
    assert "Send 200 1.024 ms 1.024 ms" in told, told


def test_latencies_of_the_process_are_for_managers_of_the_namespace_alone(world: World) -> None:
    world.set_rule("one", Rights.ALL, hub="orders", key="its key")
    manager, of_hub = signed_in(world), signed_in(world, "one", "its key", entity="orders")
    assert "data-latency" in manager.get("charts").text
    assert "data-latency" not in manager.get("entity-charts/orders").text
    assert of_hub.get("charts").status == 403 and of_hub.get("entity-charts/bills").status == 403
    assert of_hub.get("entity-charts/orders").status == 200


@pytest.mark.parametrize(
    ("buckets", "share", "ms"),
    [([], 0.5, 0), ([0] * 64, 0.99, 0), ([0, 1], 0.5, 0.002), ([0] * 10 + [50, 50], 0.5, 1.024),
     ([0] * 10 + [50, 50], 0.51, 2.048), ([0] * 10 + [99, 0, 1], 0.99, 1.024), ([0] * 10 + [98, 0, 2], 0.99, 4.096)],
)  # fmt: skip
def test_a_quantile_is_the_bound_of_its_bucket(buckets: list[int], share: float, ms: float) -> None:
    assert quantile_ms(buckets, share) == ms
