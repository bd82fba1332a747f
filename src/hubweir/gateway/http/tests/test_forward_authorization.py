"""Who names a destination of forwarding shows a token that manages it, where the profile asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hubweir.gateway.http.tests.messaging_forms import ANY, QUEUE, described
from hubweir.gateway.http.tests.service import Http, token
from hubweir.namespace.rights import Rights
from hubweir.testing.running_namespace import running_namespace

FORWARD = described(QUEUE, "<ForwardTo>sb://localhost/there</ForwardTo>")
DEAD = described(QUEUE, "<ForwardDeadLetteredMessagesTo>there</ForwardDeadLetteredMessagesTo>")


@pytest.fixture(scope="module")
def standard() -> Iterator[Http]:
    with running_namespace(profile="standard") as namespace:
        http = Http(namespace)
        assert http.call("PUT", "/there", described(QUEUE)).status == 201
        http.set_rule("there", "sender", Rights.SEND)
        yield http


@pytest.mark.parametrize(
    ("body", "header"),
    [(FORWARD, "ServiceBusSupplementaryAuthorization"), (DEAD, "ServiceBusDlqSupplementaryAuthorization")],
)
def test_a_destination_needs_a_token_that_manages_it(standard: Http, body: str, header: str) -> None:
    assert standard.call("PUT", "/from", body).status == 401
    other = "ServiceBusDlqSupplementaryAuthorization" if "Dlq" not in header else "ServiceBusSupplementaryAuthorization"
    sender = token("there", rule="sender", key="its own key")
    for given in ({other: token("there")}, {header: token("from")}, {header: sender}, {header: "rubbish"}):
        assert standard.call("PUT", "/from", body, **given).status == 401
    assert standard.call("PUT", "/from", body, **{header: token("there")}).status == 201
    assert standard.call("PUT", "/from", body, **ANY).status == 401
    assert standard.call("PUT", "/from", body, **ANY, **{header: token("")}).status == 200
    assert standard.call("PATCH", "/from", body).status == 401
    assert standard.call("PATCH", "/from", described(QUEUE, "<UserMetadata>x</UserMetadata>")).status == 200
    assert standard.call("PATCH", "/from", body, **{header: token("there")}).status == 200
    assert standard.call("DELETE", "/from").status == 200


def test_the_development_profile_asks_for_none_and_looks_at_none(http: Http) -> None:
    assert http.call("PUT", "/there", described(QUEUE)).status == 201
    assert http.call("PUT", "/from", FORWARD).status == 201
    assert http.call("PUT", "/other", FORWARD, ServiceBusSupplementaryAuthorization="rubbish").status == 201
