"""Attacks on the portal's own addresses over HTTP, numbered as the table of attacks goes on behind 71.

Each has its positive control, the same request without the attack, which must succeed. What a page itself guards
(forged forms, other hosts, sessions, rights, lockout) is tried in src/hubweir/portal/tests/; the broker's own doors (89
to 91) are not the portal's.
"""

from __future__ import annotations

import logging
import re
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from hubweir.gateway.http.tests.service import KEY, ROOT, Http, statuses
from hubweir.portal import avro_reading, visit
from hubweir.portal.avro_reading import AvroLimits
from hubweir.portal.tests.avro_files import orders
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

HEAD_MS = 1_000
FORM = "content-type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace(http_head_ms=HEAD_MS) as namespace:
        namespace.create_event_hub("orders")
        yield namespace


@pytest.fixture
def http(namespace: RunningNamespace) -> Http:
    return Http(namespace)


def sign_in_form(key: str = KEY) -> str:
    return urlencode({"rule": ROOT, "secret": key})


def posted(http: Http, *headers: str, body: str | None = None, target: str = "/portal/sign-in") -> list[int]:
    """The statuses of a sign-in with these header lines in place of its length."""
    form = sign_in_form() if body is None else body
    host = f"host: {http.namespace.host}:{http.namespace.port}"
    head = [f"POST {target} HTTP/1.1", host, FORM, "connection: close", *headers]
    return statuses(http.raw("\r\n".join([*head, "", form]).encode("latin-1")))


def length(form: str = "") -> str:
    return f"content-length: {len(form or sign_in_form())}"


def session(http: Http) -> str:
    """The cookie of somebody who signed in."""
    answer = http.call("POST", "/portal/sign-in", sign_in_form(), auth=None, content_type=FORM.partition(": ")[2])
    assert answer.status == 303
    return answer.headers["set-cookie"].partition(";")[0]


def asked(http: Http, path: str, **headers: str) -> int:
    return http.call("GET", path, auth=None, **headers).status


CHUNKED = f"{len(sign_in_form()):x}\r\n{sign_in_form()}\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("number", "headers", "body"),
    [
        (72, (length(), "transfer-encoding: chunked"), CHUNKED),
        (73, (length(), length()), None),
        (73, (f"content-length: +{len(sign_in_form())}",), None),
        (73, (f"content-length: {len(sign_in_form()):#x}",), None),
        (73, ("transfer-encoding: chunked", "transfer-encoding: chunked"), CHUNKED),
        (73, ("transfer-encoding: xchunked",), CHUNKED),
        (74, (f"content-length : {len(sign_in_form())}",), None),
        (74, (length(), "x-folded: a\r\n b"), None),
        (74, (length(), "x-nul: a\0b"), None),
        (75, (length(), "host: 127.0.0.1"), None),
        (81, (length(), "content-encoding: gzip"), None),
    ],
)
def test_a_head_that_could_be_read_in_two_ways_is_refused(
    http: Http, number: int, headers: tuple[str, ...], body: str | None
) -> None:
    assert posted(http, length()) == [303] and posted(http, "transfer-encoding: chunked", body=CHUNKED) == [303]
    (status,) = posted(http, *headers, body=body)
    assert status in (400, 415, 501), number


def test_75_an_absolute_target_must_name_the_host(http: Http) -> None:
    own = f"http://{http.namespace.host}:{http.namespace.port}/portal/sign-in"
    assert posted(http, length(), target=own) == [303]
    assert posted(http, length(), target="http://evil.example/portal/sign-in") == [400]


def test_76_and_77_headers_of_proxies_and_other_methods_mean_nothing(http: Http) -> None:
    cookie = session(http)
    assert asked(http, "/portal/queues", cookie=cookie) == 200
    for name in ("x-original-url", "x-rewrite-url", "x-forwarded-prefix"):
        connection = HTTPConnection(http.namespace.host, http.namespace.port, timeout=10)
        connection.request("GET", "/portal/sign-in", headers={name: "/portal/queues", "x-forwarded-user": ROOT})
        assert "Sign in" in connection.getresponse().read().decode()
        connection.close()
    overridden = {"x_http_method_override": "POST", "cookie": cookie}
    assert asked(http, "/portal/delete/orders?confirmed=orders&_method=POST", **overridden) == 200
    assert http.call("DELETE", "/portal/entity/orders", auth=None, cookie=cookie).status == 405
    assert asked(http, "/portal/entity/orders", cookie=cookie) == 200


@pytest.mark.parametrize(
    "path",
    ["/portal/static/../session.py", "/portal/static/%2e%2e/session.py", "/portal/static/..%2fsession.py",
     "/portal/static/..%5csession.py", "/portal/static/%252e%252e/session.py", "/portal/static//etc/passwd",
     "/portal/static/licenses/NOTICE.txt", "/portal/static/portal.css%00.js"],
)  # fmt: skip
def test_78_no_file_beside_the_named_ones_is_served(http: Http, path: str) -> None:
    assert asked(http, "/portal/static/portal.css") == 200
    assert asked(http, path) in (400, 404)


def test_79_a_slow_head_is_ended(http: Http) -> None:
    assert statuses(http.raw(b"GET /portal/sign-in HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")) == [200]
    assert statuses(http.raw(b"GET /portal/sign-in HTTP/1.1\r\nhost: local")) == [408]


def test_80_pipelined_requests_are_answered_in_turn_and_expectations_once(http: Http) -> None:
    count = 200
    one = b"GET /portal/static/icon.svg HTTP/1.1\r\nhost: localhost\r\n\r\n"
    last = one.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    assert statuses(http.raw(one * count + last)) == [200] * (count + 1)
    form = sign_in_form()
    assert statuses(http.raw(
        f"POST /portal/sign-in HTTP/1.1\r\nhost: localhost\r\n{FORM}\r\nexpect: 100-continue\r\n"
        f"connection: close\r\n{length()}\r\n\r\n{form}".encode()
    ))[-1] == 303  # fmt: skip


@pytest.mark.parametrize(
    ("number", "media", "body", "status"),
    [
        (82, "application/xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 415),
        (83, "application/json", "[" * 100_000, 413),
        (83, "application/json", '{"rule": 1e999}', 415),
        (83, FORM.partition(": ")[2], "&".join(f"f{n}=1" for n in range(10_000)), 413),
        (83, FORM.partition(": ")[2], "&".join(f"f{n}=1" for n in range(1_000)), 400),
        (83, FORM.partition(": ")[2], "rule=a&rule=b", 400),
        (83, FORM.partition(": ")[2], "rule=%ff", 400),
        (83, "multipart/form-data; boundary=x", "--x--", 415),
    ],
)
def test_82_and_83_what_is_no_form_is_refused(http: Http, number: int, media: str, body: str, status: int) -> None:
    answer = http.call("POST", "/portal/sign-in", body, auth=None, content_type=media)
    assert answer.status in (status, 415), (number, answer.status)
    assert "set-cookie" not in answer.headers
    session(http)


def test_84_wildcards_of_a_search_are_letters(http: Http) -> None:
    cookie = session(http)
    assert "entity/orders" in http.call("GET", "/portal/event-hubs?search=RDE", auth=None, cookie=cookie).text
    for wildcard in ("%", "_rders", "o*", ".", "' OR 1=1 --", "[a-z]"):
        found = http.call("GET", f"/portal/event-hubs?search={quote(wildcard)}", auth=None, cookie=cookie)
        assert found.status == 200 and "entity/orders" not in found.text, wildcard


def test_85_nothing_is_upgraded_to_a_websocket_there(http: Http) -> None:
    upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec_websocket_version": "13"}
    key = {"sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert asked(http, "/portal/sign-in", **upgrade, **key) == 200  # as if nobody had asked


def test_86_over_tls_the_cookie_is_for_tls_alone_and_the_plain_one_is_not(namespace: RunningNamespace) -> None:
    context = ssl.create_default_context(cafile=str(namespace.ca_file))
    connection = HTTPSConnection(namespace.host, namespace.port, context=context, timeout=10)
    connection.request("POST", "/portal/sign-in", sign_in_form(), {"content-type": FORM.partition(": ")[2]})
    answer = connection.getresponse()
    assert answer.status == 303 and "; Secure" in str(answer.getheader("set-cookie"))
    connection.close()
    plain = Http(namespace).call("POST", "/portal/sign-in", sign_in_form(), auth=None,
                                 content_type=FORM.partition(": ")[2])  # fmt: skip
    assert plain.status == 303 and "Secure" not in plain.headers["set-cookie"]


def test_87_and_88_no_line_of_the_log_is_forged_and_none_has_a_secret(
    http: Http, caplog: pytest.LogCaptureFixture
) -> None:
    forged = "name\r\n2026-01-01 ERROR forged\x1b[31m"
    with caplog.at_level(logging.DEBUG):
        body = urlencode({"rule": forged, "secret": "a seeded secret", "entity": forged})
        answer = http.call("POST", "/portal/sign-in", body, auth=None, content_type=FORM.partition(": ")[2])
        assert answer.status == 401
        cookie = session(http)
        asked(http, f"/portal/entity/{quote(forged)}", cookie=cookie)
        asked(http, f"/portal/entity/none?x={quote(forged)}", cookie=cookie)
    assert "HTTP refused" in caplog.text, "refusals are logged"
    for secret in ("a seeded secret", KEY, cookie.partition("=")[2]):
        assert secret not in caplog.text
    for record in caplog.records:
        assert not re.search(r"[\x00-\x1f\x7f]", record.getMessage().replace("\n", "", 0).partition("Traceback")[0])


def test_while_avro_is_read_other_requests_are_answered(
    namespace: RunningNamespace, http: Http, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading process that answers only when it is told to stands for a body that takes as long as it may."""
    program, told = tmp_path / "program.py", tmp_path / "told"
    program.write_text(
        "import os, sys, time\n"
        f"while not os.path.exists({str(told)!r}): time.sleep(0.01)\n"
        'said = b\'{"text": "read at last"}\'\n'
        "sys.stdout.buffer.write(len(said).to_bytes(4) + said)\n"
    )
    monkeypatch.setattr(avro_reading, "PROGRAM", program)
    monkeypatch.setattr(avro_reading, "LIMITS", AvroLimits(page_ms=100_000))
    monkeypatch.setattr(visit, "ANSWER_S", 100)
    begun, begin = threading.Event(), avro_reading._started

    def started(*arguments: object) -> object:
        begun.set()
        return begin(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(avro_reading, "_started", started)
    namespace.create_event_hub("avro")
    assert http.call("POST", "/avro/messages", orders()).status == 201
    cookie = session(http)
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(http.call, "GET", "/portal/events/avro?view=avro", auth=None, cookie=cookie)
        try:
            assert begun.wait(60)
            assert asked(http, "/health") == 200 and asked(http, "/portal/events/avro", cookie=cookie) == 200
            assert not page.done()
        finally:
            told.touch()
        assert "read at last" in page.result(timeout=60).text
