"""Who may do what over HTTP, and what the others are told."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import pytest

from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.http.tests.service import KEY, ROOT, Http, statuses, token
from hubweir.namespace.rights import Rights

NewHub = Callable[..., str]


def send(http: Http, path: str, auth: str | None) -> int:
    return http.call("POST", path, "x", auth=auth).status


def soon() -> int:
    return int(time.time()) + 600


def test_a_token_for_the_hub_its_partition_or_its_publisher_covers_what_lies_below(http: Http, new_hub: NewHub) -> None:
    hub = new_hub(2)
    for path, covered in {
        "": ("messages", "partitions/1/messages", "publishers/p/messages"),
        "/partitions/1": ("partitions/1/messages",),
        "/publishers/p": ("publishers/p/messages", "publisher/P/messages"),
        "/publisher/p": (),
        "2": (),
    }.items():
        for rest in ("messages", "partitions/0/messages", "partitions/1/messages", "publishers/p/messages",
                     "publisher/P/messages", "publishers/pp/messages"):  # fmt: skip
            expected = 201 if rest in covered or path == "" else 401
            assert send(http, f"/{hub}/{rest}", token(hub + path)) == expected, (path, rest)


@pytest.mark.parametrize("resource", ["https://{h}/{hub}", "sb://{h}:5671/{hub}/", "http://{h}", "{h}", "{h}/{hub}"])
def test_the_resource_of_a_token_may_be_a_uri_or_a_host(http: Http, new_hub: NewHub, resource: str) -> None:
    hub = new_hub()
    own = http.namespace.service.gateway.settings.host_name
    assert send(http, f"/{hub}/messages", make_token(resource.format(h=own, hub=hub), ROOT, KEY, soon())) == 201


@pytest.mark.parametrize("resource", ["{hub}", "/{hub}", "", "/", "elsewhere.example"])
def test_the_resource_of_a_token_is_never_a_bare_path(http: Http, new_hub: NewHub, resource: str) -> None:
    hub = new_hub()
    assert send(http, f"/{hub}/messages", make_token(resource.format(hub=hub), ROOT, KEY, soon())) == 401


@pytest.mark.parametrize(
    ("auth", "start"),
    [
        (None, "MissingToken:"),
        ("{good}x", "InvalidSignature:"),
        ("{good}&sr=x", "Malformed"),
        ("SharedAccessSignature", "Malformed"),
        ("Basic cm9vdDpyb290", "Malformed"),
        ("Bearer abc.def.ghi", "Malformed"),
        ("{expired}", "ExpiredToken: The token is expired. Expiration time:"),
        ("{other key}", "InvalidSignature:"),
        ("{no rule}", "InvalidSignature:"),
        ("{elsewhere}", "InvalidAudience:"),
        ("{listen}", "Unauthorized access. 'Send' claim(s) are required to perform this operation"),
    ],
)
def test_a_refusal_says_what_cbs_would_say(http: Http, new_hub: NewHub, auth: str | None, start: str) -> None:
    hub = new_hub()
    http.set_rule(hub, "listener", Rights.LISTEN)
    tokens = {
        "{good}": token(hub),
        "{expired}": token(hub, seconds=-1),
        "{other key}": token(hub, key="another"),
        "{no rule}": token(hub, rule="nobody"),
        "{elsewhere}": token(f"{hub}0"),
        "{listen}": token(hub, rule="listener", key="its own key"),
    }
    shown = auth
    for name, value in tokens.items():
        shown = shown and shown.replace(name, value)
    answer = http.call("POST", f"/{hub}/messages", "x", auth=shown)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "SharedAccessSignature"
    assert answer.text.startswith(f"<Error><Code>401</Code><Detail>{start}")
    assert ", TrackingId:" in answer.text
    assert send(http, f"/{hub}/messages", tokens["{good}"]) == 201


def test_each_right_gives_what_it_says_and_nothing_more(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    expected = {Rights.SEND: (201, 401), Rights.LISTEN: (401, 401), Rights.ALL: (201, 200)}
    for rights, (sending, managing) in expected.items():
        http.set_rule(hub, "rule", rights)
        auth = token(hub, rule="rule", key="its own key")
        assert send(http, f"/{hub}/messages", auth) == sending
        assert http.call("GET", f"/{hub}", auth=auth).status == managing
        assert http.call("GET", "/$Resources/Eventhubs", auth=auth).status == 401


def test_a_token_counts_for_its_request_alone(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    head = f"POST /{hub}/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n"
    requests = [f"{head}authorization: {token(hub)}\r\n\r\nx", f"{head}\r\nx", f"{head}connection: close\r\n\r\nx"]
    assert statuses(http.raw("".join(requests).encode())) == [201, 401, 401]


@pytest.mark.parametrize(
    "field",
    [
        "x-forwarded-for: 127.0.0.1", "x-original-url: /health", "x-rewrite-url: /health",
        "x-http-method-override: GET",
        "x-hubweir-identity: root", "forwarded: for=127.0.0.1", "x-ms-client-principal: root",
    ],
)  # fmt: skip
def test_no_header_from_outside_stands_for_a_token_or_another_request(http: Http, new_hub: NewHub, field: str) -> None:
    """Attacks 76 and 77."""
    hub = new_hub()
    name, _, value = field.partition(": ")
    assert http.call("POST", f"/{hub}/messages", "x", auth=None, **{name: value}).status == 401
    assert http.call("POST", f"/{hub}/messages", "x", **{name: value}).status == 201


@pytest.mark.parametrize(
    "path",
    [
        "/{hub}/../other/messages", "/{hub}/./messages", "/{hub}/%2e%2e/messages", "/{hub}%2f..%2fmessages",
        "/{hub}%5cmessages", "/{hub}//messages", "/{hub}/messages%00", "/{hub}/%ff/messages", "/{hub}/%zz/messages",
        "/%252e%252e/messages/..",
    ],
)  # fmt: skip
def test_a_path_with_two_meanings_is_refused(http: Http, new_hub: NewHub, path: str) -> None:
    """Attack 78."""
    hub = new_hub()
    assert send(http, path.format(hub=hub), "") == 400
    assert send(http, f"/{hub.upper()}/Messages", "") == 201
    assert send(http, f"/{hub}%2Fmessages", "") == 201  # an encoded slash is a slash, and nothing else


def test_an_early_answer_to_a_peer_that_waits_for_100_ends_the_connection(http: Http, new_hub: NewHub) -> None:
    """Attack 80. Nobody could tell a body that comes after all from the next request."""
    head = f"POST /{new_hub()}/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 40\r\nexpect: 100-continue\r\n"
    answers = http.raw(f"{head}\r\nGET /health HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    assert statuses(answers) == [401]
    good = http.raw(f"{head}authorization: {token()}\r\nconnection: close\r\n\r\n{'x' * 40}".encode())
    assert statuses(good) == [100, 201]


def test_a_peer_that_goes_away_in_its_body_leaves_nothing(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    head = f"POST /{hub}/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: {token()}\r\ncontent-length: 10\r\n\r\n"
    assert statuses(http.raw(f"{head}12345".encode(), end=True)) == []
    assert send(http, f"/{hub}/messages", "") == 201
    assert len(http.events(hub)) == 1
    assert http.namespace.service.gateway.process.budget.used == 0


@pytest.mark.parametrize(
    "fields",
    [
        "content-length: 1\r\ntransfer-encoding: chunked", "content-length: 1\r\ncontent-length: 2",
        "content-length: +1", "content-length: 0x1", "transfer-encoding : chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "x: y\r\n content-length: 1", "x: y\ncontent-length: 1", "host: elsewhere\r\ncontent-length: 1",
        "content-encoding: gzip\r\ncontent-length: 1",
        "content-length: 1\r\nbrokerproperties: {}\r\nbrokerproperties: {}",
    ],
)  # fmt: skip
def test_a_send_with_two_meanings_stores_nothing(http: Http, new_hub: NewHub, fields: str) -> None:
    """Attacks 72 to 75 and 81."""
    hub = new_hub()
    head = f"POST /{hub}/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: {token(hub)}\r\n"
    hidden = f"{head}content-length: 6\r\n\r\nhidden"
    (status,) = statuses(http.raw(f"{head}{fields}\r\n\r\nx{hidden}".encode()))
    assert status in (400, 415)
    good = http.raw(f"{head}content-length: 1\r\nconnection: close\r\n\r\nx".encode())
    assert statuses(good) == [201]
    assert len(http.events(hub)) == 1


def test_no_token_and_no_key_is_ever_logged(http: Http, new_hub: NewHub, caplog: pytest.LogCaptureFixture) -> None:
    """Attack 88."""
    hub = new_hub()
    caplog.set_level(logging.DEBUG)
    auths = [token(hub), token(hub, key="seeded-secret"), token(hub, seconds=-1), "SharedAccessSignature seeded-secret"]
    bodies = [http.call("POST", f"/{hub}/messages", "seeded-secret", auth=auth).text for auth in auths]
    told = caplog.text + "".join(bodies)
    assert told.count("<Code>401</Code>") == 3
    for secret in ("seeded-secret", KEY, *(auth.partition("sig=")[2].partition("&")[0] for auth in auths[:3])):
        assert secret not in told


def test_what_is_not_a_page_says_what_there_is(http: Http) -> None:
    answer = http.call("GET", "/", auth=None)
    assert answer.status == 404
    assert "/EVENTHUB/messages" in answer.text
    assert http.call("GET", "/$servicebus/websocket", auth=None).status == 404
