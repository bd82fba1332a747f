"""JSON Web Tokens: the good ones and what they prove, then every way of being none, each refused in its words."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from hubweir.auth.json_web_token import TOKEN_LIMIT, JsonWebToken, TokenIssuer
from hubweir.auth.refusal import AuthRefused, RefusalKind
from hubweir.auth.resource_scope import Scope
from hubweir.auth.verified_token import VerifiedToken
from hubweir.namespace.rights import Rights
from hubweir.testing.token_issuer import AUDIENCE, ISSUER, TestIssuer, claims_until, text_of

NOW = 1_700_000_000
OWNER = "Azure Event Hubs Data Owner"


@pytest.fixture(scope="module")
def issuer() -> TestIssuer:
    return TestIssuer()


def verified(issuer: TestIssuer, token: str, *, keys: bytes = b"", now_s: int = NOW) -> VerifiedToken:
    trusted = TokenIssuer.of_file(ISSUER, AUDIENCE, keys or issuer.keys_file())
    return trusted.verify(JsonWebToken.parse(token), now_s, hosts=frozenset(("ns",)))


def refusal(issuer: TestIssuer, token: str, **options: object) -> RefusalKind:
    with pytest.raises(AuthRefused) as refused:
        verified(issuer, token, **options)  # type: ignore[arg-type]
    assert refused.value.text.startswith(f"{refused.value.kind.value}: ")
    return refused.value.kind


@pytest.mark.parametrize("form", ["set", "PEM"])
@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_a_good_token_proves_its_roles_everywhere_until_it_ends(issuer: TestIssuer, kind: str, form: str) -> None:
    token = issuer.token(claims_until(NOW + 60, OWNER), key=getattr(issuer, kind))
    proof = verified(issuer, token, keys=issuer.pem() if form == "PEM" else b"")
    assert (proof.rights, proof.expires_at_ms) == (Rights.ALL, (NOW + 60) * 1000)
    assert proof.covers(Scope.parse("sb://ns/any/consumergroups/g"))
    assert not proof.covers(Scope.parse("sb://other/any"))


@pytest.mark.parametrize(
    ("roles", "rights"),
    [
        ((OWNER,), Rights.ALL),
        (("Azure Event Hubs Data Sender",), Rights.SEND),
        (("Azure Event Hubs Data Receiver",), Rights.LISTEN),
        (("Data Sender", "Data Receiver"), Rights.SEND | Rights.LISTEN),
        (("data owner", "Data Owner ", "Owner"), Rights.NONE),
        ((), Rights.NONE),
    ],
)
def test_roles_give_rights_letter_for_letter(issuer: TestIssuer, roles: tuple[str, ...], rights: Rights) -> None:
    assert verified(issuer, issuer.token(claims_until(NOW + 1, *roles))).rights == rights


@pytest.mark.parametrize("audience", [AUDIENCE, AUDIENCE + "/", ["other", AUDIENCE + "/"]])
def test_the_audience_may_have_a_slash_and_be_one_of_several(issuer: TestIssuer, audience: object) -> None:
    assert verified(issuer, issuer.token(claims_until(NOW + 1, OWNER, aud=audience))).rights


WRONG_CLAIMS: dict[str, tuple[dict[str, object], RefusalKind]] = {
    "expired now": ({"exp": NOW}, RefusalKind.EXPIRED),
    "expired": ({"exp": 0}, RefusalKind.EXPIRED),
    "no exp": ({"exp": None}, RefusalKind.MALFORMED),
    "exp true": ({"exp": True}, RefusalKind.MALFORMED),
    "exp text": ({"exp": str(NOW + 60)}, RefusalKind.MALFORMED),
    "exp float": ({"exp": NOW + 60.5}, RefusalKind.MALFORMED),
    "exp milliseconds": ({"exp": NOW * 1000}, RefusalKind.MALFORMED),
    "exp negative": ({"exp": -1}, RefusalKind.MALFORMED),
    "not yet": ({"nbf": NOW + 1}, RefusalKind.NOT_YET_VALID),
    "nbf text": ({"nbf": "0"}, RefusalKind.MALFORMED),
    "another audience": ({"aud": AUDIENCE + ".evil"}, RefusalKind.INVALID_AUDIENCE),
    "audience of storage": ({"aud": "https://storage.azure.com"}, RefusalKind.INVALID_AUDIENCE),
    "two slashes": ({"aud": AUDIENCE + "//"}, RefusalKind.INVALID_AUDIENCE),
    "no audience": ({"aud": None}, RefusalKind.INVALID_AUDIENCE),
    "audience in an object": ({"aud": {AUDIENCE: 1}}, RefusalKind.INVALID_AUDIENCE),
    "no audiences": ({"aud": []}, RefusalKind.INVALID_AUDIENCE),
    "another issuer": ({"iss": ISSUER + "x"}, RefusalKind.INVALID_ISSUER),
    "issuer without its slash": ({"iss": ISSUER.rstrip("/")}, RefusalKind.INVALID_ISSUER),
    "no issuer": ({"iss": None}, RefusalKind.INVALID_ISSUER),
    "issuer in a list": ({"iss": [ISSUER]}, RefusalKind.INVALID_ISSUER),
    "roles text": ({"roles": OWNER}, RefusalKind.MALFORMED),
    "roles object": ({"roles": {OWNER: True}}, RefusalKind.MALFORMED),
    "role number": ({"roles": [OWNER, 7]}, RefusalKind.MALFORMED),
}


@pytest.mark.parametrize("case", WRONG_CLAIMS)
def test_claims_that_are_not_good_are_refused(issuer: TestIssuer, case: str) -> None:
    changed, kind = WRONG_CLAIMS[case]
    claims = claims_until(NOW + 60, OWNER)
    assert verified(issuer, issuer.token(claims)).rights is Rights.ALL
    assert refusal(issuer, issuer.token({**claims, **changed})) is kind


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"}, {"alg": "None"}, {"alg": "HS256"}, {"alg": "RS512"}, {"alg": "PS256"}, {"alg": "rs256"},
        {}, {"alg": ["RS256"]}, {"alg": None}, {"alg": "RS256", "crit": ["exp"]}, {"alg": "RS256", "kid": 1},
        {"alg": "RS256", "typ": "JWE"}, {"alg": "RS256", "typ": 1}, b'{"alg":"RS256","alg":"RS256"}', b"[]", b"x",
    ],
)  # fmt: skip
def test_a_header_that_is_not_plain_is_refused(issuer: TestIssuer, header: object) -> None:
    assert refusal(issuer, issuer.token(claims_until(NOW + 60, OWNER), header=header)) is RefusalKind.MALFORMED  # type: ignore[arg-type]


def test_no_algorithm_stands_in_for_another(issuer: TestIssuer) -> None:
    """The public key as an HMAC key, one kind of key named as the other, no signature at all."""
    claims = claims_until(NOW + 60, OWNER)
    part = text_of(json.dumps(claims).encode())
    for public in (issuer.pem(), issuer.keys_file(), b""):
        signed = f"{text_of(json.dumps({'alg': 'HS256'}).encode())}.{part}"
        signature = text_of(hmac.digest(public, signed.encode(), "sha256"))
        assert refusal(issuer, f"{signed}.{signature}") is RefusalKind.MALFORMED
    for algorithm, key in (("ES256", issuer.rsa), ("RS256", issuer.ec)):
        token = issuer.token(claims, header={"alg": algorithm}, key=key)
        assert refusal(issuer, token) is RefusalKind.INVALID_SIGNATURE
    for algorithm in ("RS256", "ES256"):
        token = f"{text_of(json.dumps({'alg': algorithm}).encode())}.{part}."
        assert refusal(issuer, token) is RefusalKind.INVALID_SIGNATURE


def test_a_key_that_the_token_brings_along_is_not_looked_at(issuer: TestIssuer) -> None:
    stranger = TestIssuer()
    for more in ({"jwk": stranger.jwk_set()["keys"][0]}, {"jku": "http://127.0.0.1/keys"}, {"x5c": ["AAAA"]}):
        token = stranger.token(claims_until(NOW + 60, OWNER), header={"alg": "RS256", **more})
        assert refusal(issuer, token) is RefusalKind.INVALID_SIGNATURE
        assert verified(issuer, issuer.token(claims_until(NOW + 60, OWNER), header={"alg": "RS256", **more})).rights


def test_a_name_of_a_key_means_that_key_only(issuer: TestIssuer) -> None:
    claims = claims_until(NOW + 60, OWNER)
    for key_id, good in (("r", True), ("e", False), ("R", False), ("", False), (None, True)):
        token = issuer.token(claims, header={"alg": "RS256", **({} if key_id is None else {"kid": key_id})})
        if good:
            assert verified(issuer, token).rights
        else:
            assert refusal(issuer, token) is RefusalKind.INVALID_SIGNATURE


def test_keys_of_others_sign_nothing_and_then_nothing_else_is_told(issuer: TestIssuer) -> None:
    strange_rsa, strange_ec = rsa.generate_private_key(65_537, 2_048), ec.generate_private_key(ec.SECP256R1())
    for key in (strange_rsa, strange_ec):
        for claims in (claims_until(0), b"not JSON", {"iss": "else"}):
            assert refusal(issuer, issuer.token(claims, key=key)) is RefusalKind.INVALID_SIGNATURE  # type: ignore[arg-type]


CHANGES: dict[str, Callable[[str], str]] = {
    "a part less": lambda token: token.rpartition(".")[0],
    "a part more": lambda token: token + ".AA",
    "padding": lambda token: token + "=",
    "space in front": lambda token: " " + token,
    "line feed behind": lambda token: token + "\n",
    "NUL": lambda token: token + "\0",
    "stock base64": lambda token: token.replace("-", "+").replace("_", "/") + "+",
    "no header": lambda token: token[token.index(".") :],
    "nothing": lambda token: "",
    "dots": lambda token: "..",
    "another script": lambda token: "\u0430" + token[1:],
    "too long": lambda token: token + "A" * TOKEN_LIMIT,
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_form_of_a_good_token_is_malformed(issuer: TestIssuer, change: str) -> None:
    token = issuer.token(claims_until(NOW + 60, OWNER))
    assert verified(issuer, token).rights
    assert refusal(issuer, CHANGES[change](token)) is RefusalKind.MALFORMED


def test_claims_in_another_form_are_another_token(issuer: TestIssuer) -> None:
    header, claims, signature = issuer.token(claims_until(NOW + 60, OWNER)).split(".")
    for other in (claims + "=", claims + "\n", claims[:-1], claims + "\u0661"):
        assert refusal(issuer, f"{header}.{other}.{signature}") is RefusalKind.INVALID_SIGNATURE
    for raw in (b'{"exp":1,"exp":2}', b"[" * 4_000, b"\xff", b""):
        assert refusal(issuer, issuer.token(raw)) is RefusalKind.MALFORMED


@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_every_flipped_bit_of_the_signature_is_refused(issuer: TestIssuer, kind: str) -> None:
    import base64

    signed, _, signature = issuer.token(claims_until(NOW + 60, OWNER), key=getattr(issuer, kind)).rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    for bit in range(0, len(raw) * 8, 5):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        assert refusal(issuer, f"{signed}.{text_of(bytes(flipped))}") is RefusalKind.INVALID_SIGNATURE


def test_a_token_of_just_the_limit_is_taken(issuer: TestIssuer) -> None:
    def of(padding: int) -> str:
        return issuer.token(claims_until(NOW + 60, OWNER, fill="x" * padding))

    size = next(n for n in range(11_500, 12_300) if len(of(n)) > TOKEN_LIMIT)
    assert verified(issuer, of(size - 1)).rights
    assert refusal(issuer, of(size)) is RefusalKind.MALFORMED


def test_a_token_does_not_show_itself(issuer: TestIssuer) -> None:
    token = issuer.token(claims_until(NOW + 60, OWNER))
    shown = repr(JsonWebToken.parse(token)) + repr(verified(issuer, token))
    assert not any(part in shown for part in token.split("."))
