"""docs/http.md: its example runs, and every route and limit of the code has its line."""

import re
from pathlib import Path

import pytest

from hubweir.drivers import http_driver, websocket_driver
from hubweir.gateway import receive_slots
from hubweir.gateway.http import (
    batch_json,
    custom_properties,
    entities,
    entity_requests,
    receive_messages,
    send_messages,
    strict_xml,
)
from hubweir.gateway.http.route import Route
from hubweir.gateway.http.router import ROUTES
from hubweir.limits import PortLimits
from hubweir.namespace import strict_json

PAGE = (Path(__file__).resolve().parents[2] / "docs/http.md").read_text()
KIB = 1024


def examples(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_examples_run() -> None:
    """The later one goes on where the one before stopped."""
    events, messages = examples(PAGE)
    exec(compile(events + messages, "docs/http.md", "exec"), {})


@pytest.mark.parametrize(
    ("right", "wrong"), [("status == 201", "status == 200"), ('b"EWR to IAH", "7")', 'b"EWR to IAH", 7)')]
)
def test_an_example_that_is_wrong_fails(right: str, wrong: str) -> None:
    assert right in PAGE
    events, messages = examples(PAGE.replace(right, wrong))
    with pytest.raises(AssertionError):
        exec(compile(events + messages, "docs/http.md", "exec"), {})


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {'/'.join(route.path)}")
def test_every_route_has_its_line(route: Route) -> None:
    path = "/" + "/".join(route.path)
    words = [path] if path in PAGE else [path.rpartition("/")[0], path.rpartition("/")[2].split("{")[0]]
    lines = [line for line in PAGE.splitlines() if line.startswith("|") and route.method in line]
    if path.startswith("/{entity}/publisher/"):
        words = ["/publishers/", "`/publisher/`"]
    assert any(all(word in line for word in words) for line in lines), (route.method, path)


@pytest.mark.parametrize(
    "text",
    [
        f"{http_driver.LINE_BYTES // KIB} KiB | 414",
        f"{http_driver.HEAD_BYTES // KIB} KiB, {http_driver.HEADER_COUNT} | 431",
        f"{PortLimits().http_head_ms // 1000} s (`http_head_ms`)",
        f"{http_driver.BODY_BYTES_PER_S // KIB} KiB a second over any {http_driver.BODY_WINDOW_MS // 1000} s",
        f"{batch_json.JSON_BYTES // KIB // KIB} MiB, {strict_xml.XML_BYTES // KIB} KiB | 413",
        f"depth of JSON and XML | {strict_json.DEPTH} ",
        f"depth of JSON and XML | {strict_xml.DEPTH} ",
        f"{custom_properties.PROPERTIES_BYTES // KIB} KiB, each {custom_properties.PROPERTY_BYTES // KIB} KiB",
        f"| {http_driver.PIPELINE_COUNT}, then nothing is read",
        f"{websocket_driver.MESSAGE_BYTES // KIB} KiB, {websocket_driver.FRAGMENT_COUNT:,} |",
        f"{websocket_driver.PING_BURST} at once, one a second",
        f"at most {entity_requests.PAGE_LIMIT} at a time",
        f"({entities.PARTITION_COUNT_DEFAULT} when it is left out",
        batch_json.BATCH_MEDIA_TYPE,
        f"at most {send_messages.MESSAGE_BYTES // KIB // KIB} MiB | {send_messages.FORBIDDEN}",
        f"{receive_messages.DEFAULT_TIMEOUT_S} when nothing is said and at most {receive_messages.TIMEOUT_LIMIT_S:,}",
        f"| {receive_slots.RECEIVE_COUNT:,} | 503",
        f"{receive_slots.ANSWER_BYTES // KIB // KIB} MiB; then no receive begins | 503",
    ],
)
def test_every_limit_stands_there_as_the_code_has_it(text: str) -> None:
    assert text in PAGE
