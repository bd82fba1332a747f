"""Events in, and hubs and groups managed, over HTTPS with curl."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hubweir.amqp.messaging.annotations import PARTITION_KEY
from hubweir.amqp.messaging.message import DataBody, Message
from hubweir.auth.shared_access_signature import make_token
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import KEY, ROOT

pytestmark = [
    pytest.mark.client("curl, HTTPS"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="NOT RUN: curl is not installed"),
]
CURL_S = 60
ATOM = "http://www.w3.org/2005/Atom"
SERVICE = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
BATCH = "application/vnd.microsoft.servicebus.json"
ENTRY = "application/atom+xml;type=entry;charset=utf-8"
ANY_VERSION = ("If-Match: *",)


class Curl:
    """One way to call: over TLS, trusting the development CA, with a token of the root rule."""

    def __init__(self, doors: Doors, folder: Path) -> None:
        self._doors = doors
        self._folder = folder
        self.token = make_token(f"https://{doors.host}/", ROOT, KEY, int(time.time()) + 600)

    def call(
        self, method: str, path: str, body: str = "", *headers: str, token: str | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers by their name in lower case, and body of the answer."""
        content, head = self._folder / "content", self._folder / "head"
        content.unlink(missing_ok=True)
        command = ["curl", "--silent", "--show-error", "--max-time", str(CURL_S), "--cacert", self._doors.ca_file]
        command += ["--request", method, "--output", str(content), "--dump-header", str(head)]
        command += ["--write-out", "%{http_code}", "--header", "Expect:"]
        for header in (f"Authorization: {self.token if token is None else token}", *headers):
            command += ["--header", header]
        if body:
            command += ["--data-binary", "@-"]
        address = f"https://{self._doors.host}:{self._doors.port}{path}"
        done = subprocess.run([*command, address], input=body.encode(), capture_output=True, timeout=CURL_S + 5)
        assert done.returncode == 0, done.stderr.decode()
        fields = (line.split(": ", 1) for line in head.read_text().splitlines() if ": " in line)
        found = {name.lower(): value for name, value in fields}
        return int(done.stdout), found, content.read_bytes() if content.exists() else b""


@pytest.fixture
def curl(doors: Doors, tmp_path: Path) -> Curl:
    return Curl(doors, tmp_path)


@pytest.fixture
def made(curl: Curl) -> Iterator[str]:
    """A hub of two partitions made over HTTPS, gone at the end."""
    assert curl.call("PUT", "/made", hub_entry(days=1, partitions=2), f"Content-Type: {ENTRY}")[0] == 201
    yield "made"
    assert curl.call("DELETE", "/made")[0] in (200, 404)


def hub_entry(*, days: int, partitions: int) -> str:
    return (
        f'<entry xmlns="{ATOM}"><content type="application/xml"><EventHubDescription xmlns="{SERVICE}">'
        f"<MessageRetentionInDays>{days}</MessageRetentionInDays><PartitionCount>{partitions}</PartitionCount>"
        "</EventHubDescription></content></entry>"
    )


def element(body: bytes, name: str) -> str | None:
    return ElementTree.fromstring(body).findtext(f".//{{{SERVICE}}}{name}")


def stored(doors: Doors, hub: str, partition: int, count: int) -> list[Message]:
    with doors.raw() as client:
        client.trusted().receiver(f"{hub}/ConsumerGroups/$Default/Partitions/{partition}", credit=count + 1)
        return client.messages(count)


@pytest.mark.eh(75)
@pytest.mark.feature("send keyed")
def test_one_event_with_its_key_its_properties_and_its_raw_body(doors: Doors, curl: Curl, hub: str) -> None:
    status, headers, body = curl.call(
        "POST",
        f"/{hub}/messages?timeout=60&api-version=2014-01",
        '{"not": read}',
        "Content-Type: application/atom+xml;type=entry;charset=utf-8",
        'BrokerProperties: {"PartitionKey": "alphabet"}',
        "WindAlert: Strong Winds",
        'Quoted: "text"',
        "Number: 7",
    )
    assert (status, body) == (201, b"")
    assert headers["content-type"] == "application/xml; charset=utf-8"
    (event,) = stored(doors, hub, 2, 1)
    assert event.body == DataBody((b'{"not": read}',))
    assert (event.message_annotations or {})[PARTITION_KEY] == "alphabet"
    properties = event.application_properties or {}
    assert properties["WindAlert"] == "Strong Winds"
    assert properties["Quoted"] == "text"
    assert "Authorization" not in properties
    assert "Host" not in properties


@pytest.mark.eh(75)
@pytest.mark.feature("send to partition")
def test_to_a_partition_and_as_a_publisher(doors: Doors, curl: Curl, hub: str) -> None:
    assert curl.call("POST", f"/{hub}/partitions/3/messages", "three")[0] == 201
    assert stored(doors, hub, 3, 1)[0].body == DataBody((b"three",))
    for segment in ("publishers", "publisher"):
        assert curl.call("POST", f"/{hub}/{segment}/alphabet/messages", "published")[0] == 201
    assert [(m.message_annotations or {})[PARTITION_KEY] for m in stored(doors, hub, 2, 2)] == ["alphabet"] * 2


@pytest.mark.eh(76)
@pytest.mark.feature("send batch")
def test_a_batch_of_three_is_three_events(doors: Doors, curl: Curl, hub: str) -> None:
    items = [{"Body": "one", "UserProperties": {"n": 1}}, {"Body": "zwölf"}, {"Body": "three", "BrokerProperties": {}}]
    status, _, body = curl.call("POST", f"/{hub}/partitions/1/messages", json.dumps(items), f"Content-Type: {BATCH}")
    assert (status, body) == (201, b"")
    events = stored(doors, hub, 1, 3)
    assert [event.body for event in events] == [DataBody((item["Body"].encode(),)) for item in items]  # type: ignore[attr-defined]
    assert [event.application_properties for event in events] == [{"n": 1}, None, None]


@pytest.mark.eh(76)
@pytest.mark.feature("errors")
def test_malformed_batches_and_bad_tokens_store_nothing(doors: Doors, curl: Curl, hub: str) -> None:
    path = f"/{hub}/partitions/0/messages"
    for malformed in ("no json", '[{"Body": "x"},', '{"Body": "x"}'):
        assert curl.call("POST", path, malformed, f"Content-Type: {BATCH}")[0] == 400
    assert curl.call("POST", path, "x", "BrokerProperties: {no")[0] == 400
    wrong = make_token(f"https://{doors.host}/", ROOT, "wrong", int(time.time()) + 600)
    late = make_token(f"https://{doors.host}/", ROOT, KEY, int(time.time()) - 600)
    elsewhere = make_token(f"https://{doors.host}/events", ROOT, KEY, int(time.time()) + 600)
    for token in (wrong, late, elsewhere, ""):
        status, _, body = curl.call("POST", path, "x", token=token)
        root = ElementTree.fromstring(body)
        assert (status, root.tag, root.findtext("Code")) == (401, "Error", "401")
        assert root.findtext("Detail")
    assert curl.call("POST", "/no-such-hub/messages", "x")[0] == 404
    assert curl.call("POST", path, "the only one")[0] == 201
    assert stored(doors, hub, 0, 1)[0].body == DataBody((b"the only one",))


@pytest.mark.eh(77)
@pytest.mark.feature("management")
def test_the_life_of_a_hub(curl: Curl, made: str) -> None:
    asked = hub_entry(days=2, partitions=2)
    assert curl.call("PUT", f"/{made}", asked)[0] == 409
    status, headers, body = curl.call("PUT", f"/{made}", asked, *ANY_VERSION)
    assert (status, element(body, "MessageRetentionInDays")) == (200, "2")
    assert headers["content-type"] == ENTRY
    status, _, body = curl.call("GET", f"/{made}?api-version=2014-01")
    assert (status, element(body, "MessageRetentionInDays"), element(body, "PartitionCount")) == (200, "2", "2")
    ids = ElementTree.fromstring(body).iter("{http://schemas.microsoft.com/2003/10/Serialization/Arrays}string")
    assert [each.text for each in ids] == ["0", "1"]
    assert curl.call("PUT", f"/{made}", hub_entry(days=1, partitions=3), *ANY_VERSION)[0] == 400
    assert curl.call("DELETE", f"/{made}")[0] == 200
    for method in ("GET", "DELETE"):
        assert curl.call(method, f"/{made}")[0] == 404
    assert curl.call("PUT", f"/{made}", asked, *ANY_VERSION)[0] == 404


@pytest.mark.eh(78)
@pytest.mark.feature("management")
def test_the_life_of_a_consumer_group(curl: Curl, made: str) -> None:
    group = f"/{made}/consumergroups/new"
    assert curl.call("GET", group)[0] == 404
    assert curl.call("PUT", group)[0] == 201
    assert curl.call("PUT", group)[0] == 409
    status, _, body = curl.call("GET", group)
    assert status == 200
    assert b"ConsumerGroupDescription" in body
    status, _, body = curl.call("GET", f"/{made}/consumergroups")
    titles = [entry.findtext(f"{{{ATOM}}}title") for entry in ElementTree.fromstring(body).iter(f"{{{ATOM}}}entry")]
    assert (status, sorted(str(title) for title in titles)) == (200, ["$Default", "new"])
    assert curl.call("DELETE", group)[0] == 200
    assert curl.call("DELETE", group)[0] == 404
    assert 400 <= curl.call("DELETE", f"/{made}/consumergroups/$Default")[0] < 500
