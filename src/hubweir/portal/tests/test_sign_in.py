import base64
import json

import pytest

from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.auth.lockout import FIRST_WAIT_MS, FREE_FAILURES
from hubweir.auth.shared_access_signature import make_token
from hubweir.auth.sign_in_ledger import LIFETIME_MS
from hubweir.gateway.amqp.tests.world import KEY, ROOT, World
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.rights import Rights
from hubweir.portal.session import IDLE_MS, RENEW_MS
from hubweir.portal.sign_in import NO_ISSUER, NO_ROLE, REFUSED, TOO_LONG
from hubweir.portal.tests.browser import Browser, signed_in, text_of
from hubweir.testing.token_issuer import AUDIENCE, ISSUER, TestIssuer, claims_until


@pytest.fixture
def world() -> World:
    return World(hubs={"orders": 1})


def test_nothing_but_the_form_is_shown_to_who_is_not_signed_in(world: World) -> None:
    browser = Browser(world)
    for page in ("", "event-hubs", "entity/orders", "entity/nothing", "settings/orders", "no-such-page"):
        answer = browser.get(page)
        assert answer.status == 303 and answer.headers["location"].startswith("/portal/sign-in"), page
        assert "orders" not in text_of(browser.follow(answer))
    assert browser.post("create-queue", {"name": "x"}).status == 303
    assert not world.gateway.namespace.find_any("x")


def test_a_key_opens_the_page_that_was_asked_for(world: World) -> None:
    browser = Browser(world)
    asked = browser.get("entity/orders?page=1")
    form = browser.follow(asked)
    assert 'name="to" value="/portal/entity/orders?page=1"' in form.text
    answer = browser.sign_in(to="/portal/entity/orders?page=1")
    assert answer.headers["location"] == "/portal/entity/orders?page=1"
    assert "Partition count" in text_of(browser.follow(answer))


@pytest.mark.parametrize("to", ["https://evil.example/", "//evil.example", "/queues", "/portal//evil.example"])
def test_a_sign_in_leads_to_no_other_site(world: World, to: str) -> None:
    assert Browser(world).sign_in(to=to).headers["location"] == "/portal"
    assert "evil" not in Browser(world).get(f"sign-in?to={to}").text


@pytest.mark.parametrize("entity", ["", "orders", "nothing"])
@pytest.mark.parametrize(("rule", "key"), [(ROOT, "wrong"), ("Nobody", KEY), (ROOT, ""), ("", ""), ("", KEY)])
def test_a_failure_tells_the_same_whatever_was_wrong(world: World, entity: str, rule: str, key: str) -> None:
    browser = Browser(world)
    answer = browser.sign_in(key, rule, entity=entity)
    assert answer.status == 401 and REFUSED in text_of(answer) and not browser.set_cookies
    assert KEY not in answer.text and "wrong" not in answer.text


def test_a_rule_of_an_entity_opens_that_alone(world: World) -> None:
    world.set_rule("one", Rights.ALL, hub="orders", key="its key")
    assert Browser(world).sign_in("its key", "one").status == 401
    assert Browser(world).sign_in(entity="orders").status == 401, "the namespace's rule is none of the entity's"
    assert Browser(world).sign_in(entity="nothing").status == 401, "nor of one that is not there"
    browser = signed_in(world, "one", "its key", entity="orders")
    assert browser.get("").headers["location"] == "/portal/entity/orders"
    assert browser.get("entity/orders").status == 200
    assert browser.get("event-hubs").status == 403


def test_a_connection_string_and_a_token_sign_in(world: World) -> None:
    now_s = world.env.now_ms() // 1000
    signature = make_token("sb://localhost/", ROOT, KEY, now_s + 600)
    string = f"Endpoint=sb://localhost/;SharedAccessKeyName={ROOT};SharedAccessKey="
    for secret in (string + KEY, signature, f"Endpoint=sb://localhost/;SharedAccessSignature={signature}"):
        assert Browser(world).sign_in(secret, "whatever").status == 303, secret[:30]
    late = make_token("sb://localhost/", ROOT, KEY, now_s - 1)
    forged = make_token("sb://localhost/", ROOT, "x", now_s + 600)
    for secret in (string + "wrong", forged, late, "a.b.c", "Endpoint=x"):
        assert Browser(world).sign_in(secret).status == 401, secret[:30]


def test_the_cookie_is_for_the_portal_alone_and_over_tls_for_tls_alone(world: World) -> None:
    plain, tls = Browser(world), Browser(world, scheme="https")
    for browser in (plain, tls):
        browser.sign_in()
    kept = "; Path=/portal; HttpOnly; SameSite=Strict"
    assert plain.set_cookies[0].endswith(kept) and plain.set_cookies[0].startswith("hubweir-portal-5672=")
    assert tls.set_cookies[0].endswith(f"{kept}; Secure")
    assert KEY not in plain.set_cookies[0]


def test_keys_do_not_come_from_other_machines_over_plain_http(world: World) -> None:
    afar = Browser(world, peer="10.1.2.3")
    assert "https://" in text_of(afar.get("sign-in"))
    assert afar.sign_in().status == 403 and not afar.cookie
    assert Browser(world, peer="10.1.2.3", scheme="https").sign_in().status == 303
    assert Browser(world, peer="::1").sign_in().status == 303


def test_who_fails_too_often_waits_even_with_the_right_key_and_others_do_not(world: World) -> None:
    browser = Browser(world)
    for _ in range(FREE_FAILURES):
        assert browser.sign_in("wrong").status == 401
    refused = browser.sign_in()
    assert refused.status == 429 and "Wait 30 s" in text_of(refused) and not browser.cookie
    assert Browser(world, portal=browser.portal, peer="127.0.0.2").sign_in().status == 303
    world.run_for(FIRST_WAIT_MS)
    assert browser.sign_in().status == 303


def test_a_forged_forwarded_address_buys_no_tries(world: World) -> None:
    browser = Browser(world)
    for number in range(FREE_FAILURES):
        browser.post("sign-in", {"rule": ROOT, "secret": "wrong"}, x_forwarded_for=f"10.0.0.{number}")
    assert browser.post("sign-in", {"rule": ROOT, "secret": KEY}, x_forwarded_for="10.9.9.9").status == 429


def test_signing_out_ends_the_session_also_for_a_copy_of_its_cookie(world: World) -> None:
    browser = signed_in(world)
    copy = browser.cookie
    answer = browser.post("sign-out", {})
    assert answer.headers["location"] == "/portal/sign-in?notice=signed-out" and browser.cookie == ""
    browser.cookie = copy
    assert browser.get("event-hubs").status == 303


def test_signing_out_needs_the_nonce_too(world: World) -> None:
    browser = signed_in(world)
    assert browser.post("sign-out", {"csrf": "guessed"}).status == 403
    assert browser.get("event-hubs").status == 200


def test_use_keeps_a_session_alive_up_to_its_end_and_idleness_ends_it(world: World) -> None:
    browser = signed_in(world)
    for _ in range(LIFETIME_MS // (IDLE_MS - 1_000)):
        world.run_for(IDLE_MS - 1_000)
        assert browser.get("event-hubs").status == 200
    world.run_for(IDLE_MS - 1_000)
    assert browser.get("event-hubs").status == 303, "it is older than eight hours"
    idle = signed_in(world)
    world.run_for(IDLE_MS + 1)
    assert idle.get("event-hubs").headers["location"] == "/portal/sign-in?to=%2Fportal%2Fevent-hubs&notice=ended"


def test_a_page_that_renews_itself_keeps_no_session_alive(world: World) -> None:
    browser = signed_in(world)
    before = browser.cookie
    world.run_for(RENEW_MS)
    browser.get("event-hubs?live=1", hx_request="true")
    assert browser.cookie == before
    browser.get("event-hubs", hx_request="true")
    assert browser.cookie != before


def test_a_part_of_a_page_whose_session_is_over_leads_the_whole_page_to_the_form(world: World) -> None:
    answer = Browser(world).get("fragments/orders", hx_request="true")
    assert answer.status == 401 and answer.headers["hx-redirect"].startswith("/portal/sign-in")


# JSON Web Tokens

OWNER, RECEIVER = "Azure Event Hubs Data Owner", "Azure Event Hubs Data Receiver"


@pytest.fixture(scope="module")
def issuer() -> TestIssuer:
    return TestIssuer()


@pytest.fixture
def trusting(issuer: TestIssuer) -> World:
    return World(hubs={"orders": 1}, settings=GatewaySettings(issuer=IssuerKeys(ISSUER, AUDIENCE, issuer.keys_file)))


def web_token(issuer: TestIssuer, world: World, *roles: str, seconds: int = 600) -> str:
    return issuer.token(claims_until(world.env.now_ms() // 1000 + seconds, *roles))


def test_a_json_web_token_signs_in_with_the_rights_of_its_roles_until_it_ends(
    trusting: World, issuer: TestIssuer
) -> None:
    browser = Browser(trusting)
    assert browser.sign_in(web_token(issuer, trusting, OWNER), "whatever").status == 303
    assert "JSON Web Token" in text_of(browser.get("event-hubs")) and browser.get("settings/orders").status == 200
    reader = Browser(trusting)
    reader.follow(reader.sign_in(web_token(issuer, trusting, RECEIVER)))
    assert reader.get("events/orders").status == 200 and reader.get("send/orders").status == 403
    assert reader.get("event-hubs").status == 403
    trusting.run_for(600_000)
    assert browser.get("event-hubs").status == 303


def test_a_json_web_token_that_is_no_good_says_why_and_counts_as_a_failure(trusting: World, issuer: TestIssuer) -> None:
    browser = Browser(trusting)
    good = web_token(issuer, trusting, OWNER)
    forged = TestIssuer().token(claims_until(trusting.env.now_ms() // 1000 + 600, OWNER))
    for token in (forged, good[:-8] + "AAAAAAAA", web_token(issuer, trusting, OWNER, seconds=-1)):
        answer = browser.sign_in(token)
        assert answer.status == 401 and "The token is not taken" in text_of(answer) and token not in answer.text
    assert NO_ROLE in text_of(browser.sign_in(web_token(issuer, trusting, "a role of somebody else")))
    assert not browser.cookie and browser.sign_in("a.b.c").status == 401
    assert browser.sign_in(good).status == 429


def test_without_an_issuer_no_json_web_token_is_taken(world: World, issuer: TestIssuer) -> None:
    assert NO_ISSUER in text_of(Browser(world).sign_in(web_token(issuer, world, OWNER)))


def test_a_cookie_around_a_token_is_signed_with_that_token_alone(trusting: World, issuer: TestIssuer) -> None:
    browser = Browser(trusting)
    browser.sign_in(web_token(issuer, trusting, OWNER))
    name, value = browser.cookie.split("=", 1)
    text, _, signature = value.partition(".")
    said = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    others = (
        {"token": web_token(issuer, trusting, OWNER, seconds=900)},
        {"token": ""},
        {"used_ms": said["used_ms"] + 1},
        {"nonce": "guessed"},
        {"rule": ROOT},
        {"token": make_token("sb://localhost/", ROOT, KEY, trusting.env.now_ms() // 1000 + 600)},
    )
    for change in others:
        changed = base64.urlsafe_b64encode(json.dumps({**said, **change}).encode()).decode().rstrip("=")
        browser.cookie = f"{name}={changed}.{signature}"
        assert browser.get("event-hubs").status == 303, change
    browser.cookie = f"{name}={value}"
    assert browser.get("event-hubs").status == 200, "the control"


def test_a_token_that_no_cookie_holds_is_told(trusting: World, issuer: TestIssuer) -> None:
    claims = claims_until(trusting.env.now_ms() // 1000 + 600, OWNER, *("x" * 40 for _ in range(50)))
    answer = Browser(trusting).sign_in(issuer.token(claims))
    assert answer.status == 400 and TOO_LONG in text_of(answer) and "set-cookie" not in answer.headers
