"""Guards of every request: where it comes from, whose it is, what it may; and what every answer carries."""

import logging

import pytest

from hubweir.gateway.amqp.tests.world import KEY, ROOT, World
from hubweir.namespace.rights import Rights
from hubweir.portal.portal import Portal
from hubweir.portal.rendering import SECURITY_HEADERS
from hubweir.portal.routes import ROUTES
from hubweir.portal.tests.browser import Browser, signed_in, text_of
from hubweir.portal.visit import Visit


@pytest.fixture
def world() -> World:
    return World(hubs={"orders": 1})


def path_of(page: str, is_of_entity: bool) -> str:
    return f"{page}/orders" if is_of_entity else page


def test_every_answer_carries_the_security_headers(world: World) -> None:
    browser = Browser(world)
    answers = [browser.get("sign-in"), browser.get(""), browser.sign_in("wrong"), browser.sign_in()]
    answers += [browser.get(page) for page in ("", "event-hubs", "entity/orders", "entity/none", "nowhere", "sign-in")]
    for answer in answers:
        assert SECURITY_HEADERS.items() <= answer.headers.items(), answer.status


@pytest.mark.parametrize("route", [each for each in ROUTES if each.method == "POST"], ids=lambda each: each.page)
def test_no_change_is_made_without_the_nonce_of_the_session(world: World, route: object) -> None:
    browser = signed_in(world)
    version = world.gateway.namespace.version
    fields = {"name": "orders2", "confirmed": "orders", "status": "Active"}
    for nonce in ("", "guessed", browser.nonce[:-1], signed_in(world).nonce):
        path = path_of(route.page, route.is_of_entity)  # type: ignore[attr-defined]
        answer = browser.post(path, {**fields, "csrf": nonce})
        assert answer.status == 403 and "another session" in text_of(answer)
    assert world.gateway.namespace.version == version


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {"sec_fetch_site": "cross-site", "origin": "http://localhost:5672"},
        {"origin": "https://evil.example"},
        {"origin": "http://localhost"},
        {"origin": "null"},
    ],
)
def test_a_form_of_another_site_changes_nothing(world: World, headers: dict[str, str]) -> None:
    browser = signed_in(world)
    refused = browser.post("delete/orders", {"confirmed": "orders"}, **headers)
    assert refused.status == 403 and world.gateway.namespace.find_any("orders")
    good = {"sec_fetch_site": "same-origin"} if "sec_fetch_site" in headers else {"origin": "http://localhost:5672"}
    assert browser.post("delete/orders", {"confirmed": "orders"}, **good).status == 303
    assert not world.gateway.namespace.find_any("orders")


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:5672", "evil", "1.2.3.4.evil.example"])
def test_a_host_that_is_no_name_of_ours_gets_nothing(world: World, host: str) -> None:
    browser = Browser(world, host=host)
    assert browser.get("sign-in").status == 421 and browser.sign_in().status == 421
    assert not browser.cookie


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]:5672", "x.localhost"])
def test_addresses_and_names_of_ours_are_served(world: World, host: str) -> None:
    assert Browser(world, host=host).sign_in().status == 303


@pytest.mark.parametrize("route", ROUTES, ids=lambda each: f"{each.method}-{each.page or 'overview'}")
@pytest.mark.parametrize("rights", [Rights.SEND, Rights.LISTEN])
def test_who_may_not_manage_gets_and_changes_nothing_that_asks_for_it(
    world: World, route: object, rights: Rights
) -> None:
    world.set_rule("less", rights, key="less key")
    browser = signed_in(world, "less", "less key")
    version = world.gateway.namespace.version
    path = path_of(route.page, route.is_of_entity)  # type: ignore[attr-defined]
    fields = {"name": "orders2", "confirmed": "orders", "status": "Active"}
    answer = browser.post(path, fields) if route.method == "POST" else browser.get(path)  # type: ignore[attr-defined]
    needed: Rights = route.right  # type: ignore[attr-defined]
    if needed & rights or route.is_open:  # type: ignore[attr-defined]
        assert answer.status in (200, 303, 400, 404)
    else:
        assert answer.status == 403 and "Unauthorized access" in text_of(answer), path
    assert world.gateway.namespace.version == version


def test_nobody_hears_of_an_entity_that_their_rights_do_not_reach(world: World) -> None:
    world.set_rule("one", Rights.ALL, hub="orders", key="its key")
    browser = signed_in(world, "one", "its key", entity="orders")
    there, absent = browser.get("settings/orders2"), browser.get("settings/other")
    assert there.status == absent.status == 403
    assert browser.get("settings/orders").status == 200


def test_methods_and_pages_that_do_not_exist(world: World) -> None:
    browser = signed_in(world)
    assert browser.get("nowhere").status == 404
    assert browser.get("entity").status == 404, "it is a page of an entity, and none is named"
    assert browser.get("queues/orders").status == 404
    answer = browser.ask("PUT", "/portal/queues")
    assert answer.status == 405 and answer.headers["allow"] == "GET"
    assert browser.ask("DELETE", "/portal/entity/orders").status == 405
    assert browser.ask("GET", "/portal/delete-consumer-group/orders").status == 405
    head = browser.ask("HEAD", "/portal/queues")
    assert head.status == 200 and head.body == b""


def test_another_method_named_in_a_header_or_a_field_means_nothing(world: World) -> None:
    browser = signed_in(world)
    browser.post("entity/orders", {"_method": "DELETE"}, x_http_method_override="DELETE")
    browser.ask("GET", "/portal/delete/orders?confirmed=orders", headers={"x-http-method-override": "POST"})
    assert world.gateway.namespace.find_any("orders")


@pytest.mark.parametrize(
    "path",
    ["/portal/../health", "/portal/%2e%2e/health", "/portal/static/../portal.py", "/portal/static/%2e%2e%2fportal.py",
     "/portal//entity/orders", "/portal/entity/orders%00", "/portal/static/..%5cportal.py", "/portal/%ff"],
)  # fmt: skip
def test_paths_that_could_name_two_things_are_refused(world: World, path: str) -> None:
    assert signed_in(world).ask("GET", path).status == 400


def test_a_request_with_a_token_is_for_an_entity_of_that_name(world: World) -> None:
    browser = Browser(world)
    answer = browser.ask("GET", "/portal", headers={"authorization": "SharedAccessSignature sr=x"})
    assert answer.status == 401 and answer.body.startswith(b"<Error>")


def test_a_fault_of_a_page_tells_nothing_but_a_reference_that_the_log_has(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    browser = signed_in(world)

    def fails(self: Visit, *arguments: object, **named: object) -> None:
        if arguments[0] != "problem.html":
            raise RuntimeError("inner detail")

    whole = Visit.show
    monkeypatch.setattr(Visit, "show", lambda self, *a, **n: fails(self, *a, **n) or whole(self, *a, **n))
    with caplog.at_level(logging.INFO):
        answer = browser.get("queues")
    assert answer.status == 500 and "inner detail" not in answer.text
    reference = text_of(answer).partition("TrackingId:")[2].split(",")[0].split(" ")[0]
    assert reference and reference in caplog.text and "inner detail" in caplog.text


def test_no_key_nonce_or_cookie_comes_into_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        browser = signed_in(world)
        browser.sign_in("a wrong secret")
        browser.get("entity/none")
        browser.post("delete/orders", {"csrf": "guessed nonce"})
    for secret in (KEY, "a wrong secret", browser.nonce, browser.cookie.partition("=")[2], "guessed nonce"):
        assert secret and secret not in caplog.text


def test_a_session_of_one_namespace_is_none_under_the_host_of_another(world: World) -> None:
    browser = signed_in(world)
    browser.host = "localhost:5300"  # another port is another origin: its cookie has another name
    assert browser.get("queues").status == 303
    assert isinstance(browser.portal, Portal) and ROOT
