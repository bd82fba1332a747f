"""Published signature vectors, and the forms in which clients write tokens. Nothing on a wire."""

from __future__ import annotations

import base64
import hashlib
import hmac
from urllib.parse import quote

import pytest

from hubweir.auth.authorization_rule import AuthorizationRule
from hubweir.auth.refusal import AuthRefused
from hubweir.auth.resource_scope import Scope
from hubweir.auth.shared_access_signature import SharedAccessSignature, make_token, verify
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret

KEY, EXPIRY = "SAS_KEY_VALUE", 1_700_000_000
RULES = {name: AuthorizationRule(name, Rights.ALL, Secret(KEY), Secret("")) for name in ("root", "send policy")}


def find(name: str, scope: Scope) -> AuthorizationRule | None:
    return RULES.get(name)


def is_good(token: str) -> bool:
    try:
        verify(SharedAccessSignature.parse(token), find, EXPIRY - 1)
    except AuthRefused:
        return False
    return True


def signed(resource: str) -> str:
    digest = hmac.new(KEY.encode(), f"{resource}\n{EXPIRY}".encode(), hashlib.sha256).digest()
    return quote(base64.b64encode(digest).decode(), safe="")


@pytest.mark.eh(26)
@pytest.mark.parametrize(
    ("resource", "signature"),
    [
        ("sb://ns1.servicebus.windows.net/hub1", "1XaVL0ZpXMKxM8BKakOjKXUXGX8vHDHe%2FKYbNsN8aOk%3D"),
        (
            "sb://localhost:5672/hub1/consumergroups/$Default",
            "zjLTDxV09e9jh1JLwI4W60H5357%2FfFsbhGFADstfyx4%3D",
        ),
    ],
)
def test_published_vectors_are_made_and_verified(resource: str, signature: str) -> None:
    token = make_token(resource, "root", KEY, EXPIRY)
    assert f"&sig={signature}&" in token
    assert is_good(token)
    lower = quote(resource, safe="")
    for escape in ("%3A", "%2F", "%24"):
        lower = lower.replace(escape, escape.lower())
    good = f"SharedAccessSignature sr={lower}&sig={signed(lower)}&se={EXPIRY}&skn=root"
    assert is_good(good)
    # Signed in one case and presented in the other: the text that was signed is not the one that stands there.
    assert not is_good(f"SharedAccessSignature sr={lower}&sig={signature}&se={EXPIRY}&skn=root")


@pytest.mark.eh(26, 27)
def test_a_rule_name_that_was_encoded_twice_is_found() -> None:
    resource = quote("sb://ns1.servicebus.windows.net/hub1", safe="")
    assert is_good(f"SharedAccessSignature sr={resource}&sig={signed(resource)}&se={EXPIRY}&skn=send%2Bpolicy")


@pytest.mark.eh(27)
@pytest.mark.sb(11)
@pytest.mark.parametrize("order", [("se", "skn", "sr", "sig"), ("sig", "sr", "skn", "se")])
def test_fields_in_any_order_and_raw_values(order: tuple[str, ...]) -> None:
    resource = "sb://localhost/hub1"
    raw_signature = base64.b64encode(
        hmac.new(KEY.encode(), f"{resource}\n{EXPIRY}".encode(), hashlib.sha256).digest()
    ).decode()
    fields = {"sr": resource, "sig": raw_signature, "se": str(EXPIRY), "skn": "send policy"}
    assert is_good("SharedAccessSignature " + "&".join(f"{name}={fields[name]}" for name in order))
    fields["se"] = str(EXPIRY + 1)
    assert not is_good("SharedAccessSignature " + "&".join(f"{name}={fields[name]}" for name in order))
