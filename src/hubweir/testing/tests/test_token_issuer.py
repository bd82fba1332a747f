"""The issuer of the tests: another implementation agrees with its signatures, and with what is wrong on purpose."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from hubweir.testing.token_issuer import AUDIENCE, ISSUER, TestIssuer, claims_until, text_of


@pytest.fixture(scope="module")
def issuer() -> TestIssuer:
    return TestIssuer()


def bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def verify(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, token: str) -> dict[str, object]:
    """The claims of a token that key signed; InvalidSignature for any other. (RFC 7515, RFC 7518 section 3)"""
    signed, _, signature = token.rpartition(".")
    header, claims = (json.loads(bytes_of(part)) for part in signed.split("."))
    if isinstance(key, rsa.RSAPublicKey):
        assert header["alg"] == "RS256"
        key.verify(bytes_of(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    else:
        assert header["alg"] == "ES256" and len(bytes_of(signature)) == 64
        r, s = (int.from_bytes(half) for half in (bytes_of(signature)[:32], bytes_of(signature)[32:]))
        key.verify(encode_dss_signature(r, s), signed.encode(), ec.ECDSA(hashes.SHA256()))
    assert isinstance(claims, dict)
    return claims


def test_a_token_is_signed_with_the_key_that_was_named_and_no_other(issuer: TestIssuer) -> None:
    claims = claims_until(1_800_000_000, "Azure Event Hubs Data Sender", nbf=5)
    assert claims["iss"] == ISSUER and claims["aud"] == AUDIENCE
    assert verify(issuer.rsa.public_key(), issuer.token(claims)) == claims
    assert verify(issuer.ec.public_key(), issuer.token(claims, key=issuer.ec)) == claims
    with pytest.raises(InvalidSignature):
        verify(TestIssuer().rsa.public_key(), issuer.token(claims))


def test_both_forms_of_its_keys_are_the_keys_that_it_signs_with(issuer: TestIssuer) -> None:
    rsa_key, ec_key = issuer.jwk_set()["keys"]
    numbers = rsa.RSAPublicNumbers(*(int.from_bytes(bytes_of(str(rsa_key[name]))) for name in ("e", "n")))
    assert verify(numbers.public_key(), issuer.token({"a": 1})) == {"a": 1}
    x, y = (int.from_bytes(bytes_of(str(ec_key[name]))) for name in ("x", "y"))
    curve = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    assert verify(curve, issuer.token({"a": 1}, key=issuer.ec)) == {"a": 1}
    assert json.loads(issuer.keys_file()) == issuer.jwk_set()
    ends = b"-----END PUBLIC KEY-----\n"
    first, second = [load_pem_public_key(part + ends) for part in issuer.pem().split(ends)[:2]]
    assert (first, second) == (issuer.rsa.public_key(), issuer.ec.public_key())
    assert b"PRIVATE" not in issuer.pem() and not {"d", "p", "q"} & (set(rsa_key) | set(ec_key))


def test_what_is_wrong_on_purpose_stays_wrong(issuer: TestIssuer) -> None:
    """Headers and claims of a test's own go in as they are, and are signed all the same."""
    odd = issuer.token(b"no json", header={"alg": "none"})
    header, claims, _ = odd.split(".")
    assert json.loads(bytes_of(header)) == {"alg": "none"} and bytes_of(claims) == b"no json"
    raw = issuer.token({}, header=b"{}")
    assert raw.startswith(text_of(b"{}") + ".")
