"""Management over plain HTTP on the port of everything else, request by request: status, names and texts of answers.

A namespace of queues alone: there what does not exist is 410 to a send. One .NET client speaks so by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.client import HTTPConnection
from xml.etree import ElementTree

import pytest

from hubweir.auth.shared_access_signature import make_token
from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.conftest import HOST, Serve
from tests.conformance.raw_client import KEY, ROOT
from tests.conformance.test_https import ATOM, ENTRY, SERVICE

pytestmark = pytest.mark.conformance
WAIT_S = 30
ANY = {"If-Match": "*"}
UNLIMITED = "P10675199DT2H48M5.4775807S"
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
SCHEMA = "http://www.w3.org/2001/XMLSchema"


@pytest.fixture(scope="module")
def namespace(serve: Serve) -> Iterator[RunningNamespace]:
    with serve(host=(HOST,)) as namespace:
        yield namespace


class Plain:
    """Requests without TLS, with a token for all of the namespace."""

    def __init__(self, namespace: RunningNamespace) -> None:
        self._namespace = namespace

    def call(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, bytes]:
        """Status and body of the answer."""
        token = make_token(f"http://{self._namespace.host}/", ROOT, KEY, int(time.time()) + 600)
        connection = HTTPConnection(self._namespace.host, self._namespace.port, timeout=WAIT_S)
        try:
            said = {"Authorization": token, "Content-Type": ENTRY, **headers}
            connection.request(method, f"{path}{'&' if '?' in path else '?'}api-version=2021-05", body, said)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture
def plain(namespace: RunningNamespace) -> Plain:
    return Plain(namespace)


def described(kind: str, **members: str) -> str:
    inside = "".join(f"<{name}>{value}</{name}>" for name, value in members.items())
    return entry(f'<{kind} xmlns="{SERVICE}" xmlns:i="{INSTANCE}">{inside}</{kind}>')


def entry(inside: str) -> str:
    return f'<entry xmlns="{ATOM}"><content type="application/xml">{inside}</content></entry>'


def said(body: bytes, name: str) -> str | None:
    return ElementTree.fromstring(body).findtext(f".//{{{SERVICE}}}{name}")


@pytest.mark.sb(138, 139, 140)
def test_a_queue_is_made_changed_and_deleted_with_the_statuses_that_clients_know(plain: Plain) -> None:
    asked = described("QueueDescription", LockDuration="PT13S")
    status, body = plain.call("PUT", "/q", asked)
    assert (status, said(body, "LockDuration"), said(body, "MaxDeliveryCount")) == (201, "PT13S", "10")
    status, body = plain.call("PUT", "/q", asked)
    assert status == 409 and b"<Code>409</Code>" in body and b"SubCode=40900" in body
    status, body = plain.call("PUT", "/q", described("QueueDescription", LockDuration="PT14S"), **ANY)
    assert (status, said(body, "LockDuration")) == (200, "PT14S")
    status, body = plain.call("GET", "/q")
    assert (status, said(body, "LockDuration")) == (200, "PT14S")
    assert plain.call("DELETE", "/q") == (200, b"")
    for method, more in (("GET", {}), ("DELETE", {}), ("PUT", ANY)):
        status, body = plain.call(method, "/q", asked, **more)
        assert status == 404 and b"<Code>404</Code>" in body and b"SubCode=40400" in body


@pytest.mark.sb(147)
def test_durations_come_back_letter_for_letter_and_the_longest_in_one_spelling(plain: Plain) -> None:
    written = {"LockDuration": "PT45S", "DefaultMessageTimeToLive": "PT10M0S", "AutoDeleteOnIdle": "PT6H"}
    _, body = plain.call("PUT", "/lasting", described("QueueDescription", **written))
    assert {name: said(body, name) for name in written} == written
    longest = {"DefaultMessageTimeToLive": "P10675199DT2H48M5.47758S", "AutoDeleteOnIdle": UNLIMITED}
    _, body = plain.call("PUT", "/lasting", described("QueueDescription", **longest), **ANY)
    assert {name: said(body, name) for name in longest} == dict.fromkeys(longest, UNLIMITED)
    assert plain.call("DELETE", "/lasting")[0] == 200


@pytest.mark.sb(143)
def test_counts_stand_under_a_prefix_that_their_parent_alone_declares(plain: Plain) -> None:
    status, body = plain.call("PUT", "/counted", described("QueueDescription"))
    assert status == 201
    for name in ("Active", "DeadLetter", "Scheduled", "Transfer", "TransferDeadLetter"):
        assert f"<d2p1:{name}MessageCount>0</d2p1:{name}MessageCount>".encode() in body
    assert body.count(b"xmlns:d2p1=") == 1 and b"<CountDetails xmlns:d2p1=" in body
    assert plain.call("DELETE", "/counted")[0] == 200


@pytest.mark.sb(144)
def test_a_long_parameter_comes_back_as_a_type_that_every_client_reads(plain: Plain) -> None:
    """The client of JavaScript reads no long: what an int holds is one, and what is larger a double."""
    assert plain.call("PUT", "/t", described("TopicDescription"))[0] == 201
    assert plain.call("PUT", "/t/subscriptions/s", described("SubscriptionDescription"))[0] == 201
    values = "".join(
        f"<KeyValueOfstringanyType><Key>@{name}</Key>"
        f'<Value i:type="d:long" xmlns:d="{SCHEMA}">{value}</Value></KeyValueOfstringanyType>'
        for name, value in (("small", 7), ("large", 2**40))
    )
    inside = f"<SqlExpression>n = @small</SqlExpression><Parameters>{values}</Parameters>"
    asked = entry(
        f'<RuleDescription xmlns="{SERVICE}" xmlns:i="{INSTANCE}"><Filter i:type="SqlFilter">{inside}</Filter>'
        f'<Action i:type="SqlRuleAction">{inside.replace("n = @small", "SET n = @large")}</Action></RuleDescription>'
    )
    status, body = plain.call("PUT", "/t/subscriptions/s/rules/r", asked)
    assert status == 201
    typed = [
        (each.get(f"{{{INSTANCE}}}type"), float(each.text or ""))
        for each in ElementTree.fromstring(body).iter(f"{{{SERVICE}}}Value")
    ]
    assert typed == [("d6p1:int", 7), ("d6p1:double", 2**40)] * 2
    assert plain.call("DELETE", "/t")[0] == 200


@pytest.mark.sb(170)
@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("more", [{}, ANY], ids=["unconditional", "If-Match"])
def test_the_root_is_an_error_in_xml(plain: Plain, method: str, more: dict[str, str]) -> None:
    status, body = plain.call(method, "/", described("QueueDescription") if method == "PUT" else "", **more)
    assert 400 <= status < 500
    assert ElementTree.fromstring(body).findtext("Code") == str(status)


@pytest.mark.sb(154)
def test_messages_of_a_queue_that_is_not_there_are_410(plain: Plain) -> None:
    assert plain.call("PUT", "/there", described("QueueDescription"))[0] == 201
    for method, path in (("POST", "/absent/messages"), ("POST", "/absent/messages/head?timeout=0")):
        status, body = plain.call(method, path, "x")
        assert status == 410 and b"<Code>410</Code>" in body and b"could not be found" in body
    assert plain.call("DELETE", "/there")[0] == 200
    assert plain.call("GET", "/absent")[0] == 404
