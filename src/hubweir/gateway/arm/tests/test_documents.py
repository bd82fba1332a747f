"""Lists by pages: a link to the next one where more follows, and never to the same one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hubweir.gateway.arm.tests.arm_client import HUBS, ArmClient
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


@pytest.fixture(scope="module")
def running() -> Iterator[RunningNamespace]:
    with running_namespace() as started:
        for number in range(5):
            started.create_event_hub(f"hub{number}", partition_count=1)
        yield started


def test_pages_have_every_item_once(client: ArmClient) -> None:
    path, names, pages = f"{HUBS}/hubweir/eventhubs?api-version=2024-01-01&$top=2", [], 0
    while path and pages < 4:
        _, page = client.ask("GET", path)
        names += [each["name"] for each in page["value"]]
        link = page.get("nextLink", "")
        assert not link or "api-version=2024-01-01" in link
        path, pages = link and "/" + link.partition("://")[2].partition("/")[2], pages + 1
    assert names == [f"hub{number}" for number in range(5)] and pages == 3


@pytest.mark.parametrize(("query", "count"), [("", 5), ("$top=5", 5), ("$skip=5", 0), ("$skip=4&$top=999999", 1)])
def test_the_last_page_has_no_link(client: ArmClient, query: str, count: int) -> None:
    status, page = client.ask("GET", f"{HUBS}/hubweir/eventhubs?{query}")
    assert status == 200 and len(page["value"]) == count and "nextLink" not in page


@pytest.mark.parametrize(
    "query", ["$top=0", "$top=-1", "$skip=x", "$skip=1234567", "$top=%C2%B2", "&".join(f"a{n}=1" for n in range(33))]
)
def test_a_query_that_is_none_is_refused(client: ArmClient, query: str) -> None:
    assert client.refused("GET", f"{HUBS}/hubweir/eventhubs?{query}")[:2] == (400, "BadRequest")


def test_ids_are_paths(client: ArmClient) -> None:
    path = HUBS.replace("/S/", "/a%20b/").replace("/G/", "/c%20d/") + "/hubweir/eventhubs/hub0"
    status, hub = client.ask("GET", path)
    assert status == 200 and hub["id"] == path
