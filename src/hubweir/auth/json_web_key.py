"""The public keys that JSON Web Tokens are checked with, read from one file: a JWK set, or PEM blocks.

| algorithm | key          | signature                                 |
|-----------|--------------|-------------------------------------------|
| RS256     | RSA, 2048 up | RSASSA-PKCS1-v1_5 with SHA-256            |
| ES256     | EC, P-256    | ECDSA with SHA-256, r and s, 32 bytes each |

A key verifies by the one algorithm of its kind, whatever a token says: that shuts out every confusion of algorithms,
symmetric keys among them. (RFC 7515, 7517, 7518)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from hubweir.auth.base64url import IllegalBase64, base64url
from hubweir.errors import HubweirError
from hubweir.namespace.strict_json import IllegalJson, read_object

KEYS_LIMIT = 64  # of one file: issuers publish a handful, old and new ones while they rotate
FILE_LIMIT = 256 * 1024
RSA_BITS_MIN = 2_048
RS256, ES256 = "RS256", "ES256"
_COORDINATE_BYTES = 32
_PEM = re.compile(rb"-----BEGIN ([A-Z ]{1,40})-----[^-]*-----END \1-----")
# Members that only a private or a symmetric key has.
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")


class BadKeys(HubweirError):
    """The file holds no public keys that can be used; the text says what is wrong with it, never what it holds."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """One public key. key_id: the `kid` that tokens name it by; None: a token with any kid may mean it."""

    algorithm: str
    key_id: str | None
    _public: rsa.RSAPublicKey | ec.EllipticCurvePublicKey = field(repr=False)

    def verifies(self, signed: bytes, signature: bytes) -> bool:
        """True when this key's owner signed these bytes by this key's algorithm."""
        try:
            if isinstance(self._public, rsa.RSAPublicKey):
                self._public.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
                return True
            if len(signature) != 2 * _COORDINATE_BYTES:
                return False
            r, s = (int.from_bytes(half) for half in (signature[:_COORDINATE_BYTES], signature[_COORDINATE_BYTES:]))
            self._public.verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


def read_keys(data: bytes) -> tuple[VerificationKey, ...]:
    """The keys in a file: a JSON object with the member `keys`, or else PEM. Raises BadKeys."""
    if len(data) > FILE_LIMIT:
        raise BadKeys(f"it is larger than {FILE_LIMIT} bytes")
    keys = _read_set(data) if data.lstrip().startswith(b"{") else _read_pem(data)
    if not 0 < len(keys) <= KEYS_LIMIT:
        raise BadKeys(f"it holds {len(keys)} public keys; 1 to {KEYS_LIMIT} are allowed")
    return keys


def _read_pem(data: bytes) -> tuple[VerificationKey, ...]:
    blocks = list(_PEM.finditer(data))
    if any(block[1] != b"PUBLIC KEY" for block in blocks):
        raise BadKeys("it holds a PEM block that is no PUBLIC KEY; a private key never belongs there")
    try:
        return tuple(_checked(load_pem_public_key(block[0]), None) for block in blocks)
    except (ValueError, UnsupportedAlgorithm):
        raise BadKeys("it holds a PEM block that cannot be read") from None


def _read_set(data: bytes) -> tuple[VerificationKey, ...]:
    try:
        members = read_object(data).get("keys")
    except IllegalJson as error:
        raise BadKeys(f"it is no JWK set: {error}") from None
    if not isinstance(members, list) or not all(isinstance(member, dict) for member in members):
        raise BadKeys("it is no JWK set: 'keys' is no list of objects")
    return tuple(_read_key(number, member) for number, member in enumerate(members))


def _read_key(number: int, member: Mapping[str, object]) -> VerificationKey:
    """One JWK: what is not meant for signatures, or by another algorithm, is refused, not skipped."""
    try:
        if any(name in member for name in _PRIVATE):
            raise BadKeys("it is private or symmetric; give the public half only")
        if member.get("use", "sig") != "sig":
            raise BadKeys("its 'use' is not sig")
        key_id = member.get("kid")
        if not (key_id is None or isinstance(key_id, str)):
            raise BadKeys("its 'kid' is no text")
        key = _checked(_public_key(member), key_id)
        if member.get("alg", key.algorithm) != key.algorithm:
            raise BadKeys(f"its 'alg' is not {key.algorithm}")
        return key
    except (BadKeys, IllegalBase64, ValueError) as error:
        raise BadKeys(f"its key {number}: {error}") from None


def _public_key(member: Mapping[str, object]) -> object:
    match member.get("kty"):
        case "RSA":
            return rsa.RSAPublicNumbers(_number(member, "e"), _number(member, "n")).public_key()
        case "EC" if member.get("crv") == "P-256":
            x, y = _number(member, "x", _COORDINATE_BYTES), _number(member, "y", _COORDINATE_BYTES)
            return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    raise BadKeys("it is neither an RSA key nor an EC key on P-256")


def _number(member: Mapping[str, object], name: str, size: int | None = None) -> int:
    value = member.get(name)
    if not isinstance(value, str):
        raise BadKeys(f"its '{name}' is no text")
    data = base64url(value)
    if size is not None and len(data) != size:
        raise BadKeys(f"its '{name}' has {len(data)} bytes, not {size}")
    return int.from_bytes(data)


def _checked(public: object, key_id: str | None) -> VerificationKey:
    if isinstance(public, rsa.RSAPublicKey):
        if public.key_size < RSA_BITS_MIN:
            raise BadKeys(f"an RSA key has {public.key_size} bits; {RSA_BITS_MIN} at least")
        return VerificationKey(RS256, key_id, public)
    if isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1):
        return VerificationKey(ES256, key_id, public)
    raise BadKeys("a key is neither an RSA key nor an EC key on P-256")
