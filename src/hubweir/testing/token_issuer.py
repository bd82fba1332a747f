"""An issuer of JSON Web Tokens for tests: makes its own keys, signs anything it is told, right or wrong."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ISSUER, AUDIENCE = "https://issuer.example/", "https://eventhubs.azure.net"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class TestIssuer:
    """One RSA key named r, one EC key named e."""

    __test__ = False  # no test of pytest's

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(65_537, 2_048)
        self.ec = ec.generate_private_key(ec.SECP256R1())

    def jwk_set(self) -> dict[str, list[dict[str, object]]]:
        """Both public keys as a JWK set."""
        rsa_numbers, ec_numbers = self.rsa.public_key().public_numbers(), self.ec.public_key().public_numbers()
        n, e = (value.to_bytes((value.bit_length() + 7) // 8) for value in (rsa_numbers.n, rsa_numbers.e))
        x, y = ec_numbers.x.to_bytes(32), ec_numbers.y.to_bytes(32)
        return {
            "keys": [
                {"kty": "RSA", "kid": "r", "use": "sig", "alg": "RS256", "n": text_of(n), "e": text_of(e)},
                {"kty": "EC", "kid": "e", "crv": "P-256", "x": text_of(x), "y": text_of(y)},
            ]
        }

    def keys_file(self) -> bytes:
        return json.dumps(self.jwk_set()).encode()

    def pem(self) -> bytes:
        """Both public keys as PEM."""
        return b"".join(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            for key in (self.rsa, self.ec)
        )

    def token(
        self,
        claims: Mapping[str, object] | bytes,
        *,
        header: Mapping[str, object] | bytes | None = None,
        key: PrivateKey | None = None,
    ) -> str:
        """A signed token. key: the RSA key unless told; header: what fits that key unless told."""
        key = key or self.rsa
        if header is None:
            header = {"alg": "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256", "typ": "JWT"}
        parts = [text_of(part if isinstance(part, bytes) else json.dumps(part).encode()) for part in (header, claims)]
        signed = ".".join(parts)
        return f"{signed}.{text_of(sign(key, signed.encode()))}"


def claims_until(expires_at_s: int, *roles: str, **more: object) -> dict[str, object]:
    """Claims of a good token with these roles."""
    return {"iss": ISSUER, "aud": AUDIENCE, "exp": expires_at_s, "roles": list(roles), **more}


def sign(key: PrivateKey, data: bytes) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


def text_of(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
