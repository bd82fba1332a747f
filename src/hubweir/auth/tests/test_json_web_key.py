from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from hubweir.auth.json_web_key import ES256, FILE_LIMIT, RS256, BadKeys, read_keys
from hubweir.testing.token_issuer import TestIssuer, sign, text_of


@pytest.fixture(scope="module")
def issuer() -> TestIssuer:
    return TestIssuer()


def test_both_forms_of_a_file_give_the_same_keys(issuer: TestIssuer) -> None:
    from_set, from_pem = read_keys(issuer.keys_file()), read_keys(b"# comment\n" + issuer.pem())
    assert [key.algorithm for key in from_set] == [key.algorithm for key in from_pem] == [RS256, ES256]
    assert [key.key_id for key in from_set] == ["r", "e"]
    assert [key.key_id for key in from_pem] == [None, None]
    for keys in (from_set, from_pem):
        for key, private in zip(keys, (issuer.rsa, issuer.ec), strict=True):
            signature = sign(private, b"text")
            assert key.verifies(b"text", signature)
            assert not key.verifies(b"texT", signature)
            assert not key.verifies(b"text", signature[:-1] + bytes([signature[-1] ^ 1]))
            assert not key.verifies(b"text", signature[:-1])
            assert not key.verifies(b"text", b"")


def test_a_signature_of_zeros_verifies_nothing(issuer: TestIssuer) -> None:
    assert not any(key.verifies(b"text", bytes(size)) for key in read_keys(issuer.pem()) for size in (64, 256))


CHANGES: dict[str, Callable[[Any], object]] = {
    "private RSA": lambda keys: keys[0].update(d="AQ"),
    "private EC": lambda keys: keys[1].update(d="AQ"),
    "symmetric": lambda keys: keys.append({"kty": "oct", "k": "AQ"}),
    "for encryption": lambda keys: keys[0].update(use="enc"),
    "another algorithm": lambda keys: keys[0].update(alg="RS512"),
    "the EC algorithm for RSA": lambda keys: keys[0].update(alg="ES256"),
    "another curve": lambda keys: keys[1].update(crv="P-384"),
    "off the curve": lambda keys: keys[1].update(x=text_of(bytes(31) + b"\1")),
    "a short coordinate": lambda keys: keys[1].update(x=text_of(b"\1" * 31)),
    "no modulus": lambda keys: keys[0].pop("n"),
    "padded": lambda keys: keys[0].update(e="AQAB=="),
    "a number for a name": lambda keys: keys[0].update(kid=7),
    "small": lambda keys: keys[0].update(n=text_of(b"\xff" * 128)),
    "an even exponent": lambda keys: keys[0].update(e="Ag"),
    "none": lambda keys: keys.clear(),
    "too many": lambda keys: keys.extend([keys[0]] * 64),
    "no object": lambda keys: keys.append("x"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_set_with_a_key_that_is_not_good_is_refused_whole(issuer: TestIssuer, change: str) -> None:
    document = issuer.jwk_set()
    CHANGES[change](document["keys"])
    with pytest.raises(BadKeys):
        read_keys(json.dumps(document).encode())


def test_pem_that_is_no_public_key_is_refused(issuer: TestIssuer) -> None:
    private = issuer.ec.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    small = rsa.generate_private_key(65_537, 1_024).public_key()
    other = ec.generate_private_key(ec.SECP384R1()).public_key()
    bad = [key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in (small, other)]
    garbled = b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
    for data in (b"", b"nothing", private, issuer.pem() + private, garbled, b"{", b'{"keys":7}', *bad):
        with pytest.raises(BadKeys) as refusal:
            read_keys(data)
        assert "AAAA" not in str(refusal.value)
    with pytest.raises(BadKeys):
        read_keys(issuer.pem() + b" " * FILE_LIMIT)
    for data in (private, issuer.pem() + private):
        with pytest.raises(BadKeys, match="a private key never belongs there"):
            read_keys(data)
