"""JSON Web Tokens at a live service that was told an issuer by its settings: good ones, and ways of forging one."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hubweir.amqp.transport.performatives import Detach
from hubweir.testing.running_namespace import running_namespace
from hubweir.testing.token_issuer import ISSUER, TestIssuer, claims_until, text_of
from tests.attacks.target import UNAUTHORIZED, Target, build

OWNER, SENDER, RECEIVER = (f"Azure Event Hubs Data {role}" for role in ("Owner", "Sender", "Receiver"))
ISSUER_KEYS = TestIssuer()
LATE = 2_000_000_000


@pytest.fixture(scope="module")
def keys_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("keys") / "keys.json"
    path.write_bytes(ISSUER_KEYS.keys_file())
    return path


@pytest.fixture(scope="module")
def target(keys_file: Path) -> Iterator[Target]:
    with running_namespace(jwt_issuer=ISSUER, jwt_keys_file=str(keys_file), jwt_keys_check_ms=100) as namespace:
        namespace.create_event_hub("hub1")
        yield Target(namespace)


def good(*roles: str, **claims: object) -> str:
    return ISSUER_KEYS.token(claims_until(LATE, *roles, **claims))


def forged(header: dict[str, object], sign: Callable[[bytes], bytes]) -> str:
    signed = ".".join(text_of(json.dumps(part).encode()) for part in (header, claims_until(LATE, OWNER)))
    return f"{signed}.{text_of(sign(signed.encode()))}"


FORGED = {
    "no algorithm": ("Malformed", lambda: forged({"alg": "none"}, lambda signed: b"")),
    "the public key as an HMAC key": (
        "Malformed",
        lambda: forged({"alg": "HS256"}, lambda signed: hmac.digest(ISSUER_KEYS.pem(), signed, "sha256")),
    ),
    "no signature": ("InvalidSignature:", lambda: good(OWNER).rpartition(".")[0] + "."),
    "another issuer's key": ("InvalidSignature:", lambda: TestIssuer().token(claims_until(LATE, OWNER))),
    "the kind of another key": (
        "InvalidSignature:",
        lambda: ISSUER_KEYS.token(claims_until(LATE, OWNER), header={"alg": "ES256"}),
    ),
    "expired": ("ExpiredToken:", lambda: ISSUER_KEYS.token(claims_until(int(time.time()) - 1, OWNER))),
    "not yet good": ("NotYetValidToken:", lambda: good(OWNER, nbf=LATE - 1)),
    "for another service": ("InvalidAudience:", lambda: good(OWNER, aud="https://storage.azure.com")),
    "another iss": ("InvalidIssuer:", lambda: good(OWNER, iss="https://issuer.example")),
    "no expiry": ("Malformed", lambda: good(OWNER, exp=None)),
    "over 16 KiB": ("Malformed", lambda: good(OWNER, fill="x" * 16_384)),
    "nothing": ("Malformed", lambda: ".."),
}


@pytest.mark.parametrize("case", FORGED)
@pytest.mark.parametrize("scheme", ["", "Bearer "])
def test_a_forged_token_is_refused_and_the_good_one_is_taken(target: Target, case: str, scheme: str) -> None:
    words, make = FORGED[case]
    token = make()
    with target.client() as client:
        code, text = target.put(client, token)
        assert code == 401, text
        assert text.startswith(words), text
        assert client.refused("hub1", sends=True).condition == UNAUTHORIZED
        assert target.put(client, good(OWNER))[0] == 202
        client.sender("hub1")
    assert target.https(scheme + token) == 401
    assert target.https(scheme + good(OWNER)) == 201


def test_roles_hold_at_both_doors(target: Target) -> None:
    for role, sends, manages in ((OWNER, 201, 200), (SENDER, 201, 401), (RECEIVER, 401, 401), ("Reader", 401, 401)):
        assert target.https(f"Bearer {good(role)}") == sends, role
        assert target.https(f"Bearer {good(role)}", "hub1", method="GET", body=b"") == manages, role


def test_a_long_token_goes_through_both_doors(target: Target) -> None:
    token = good(OWNER, groups=["g" * 36] * 250)
    assert 12_000 < len(token) < 16_384
    with target.client() as client:
        assert target.put(client, token)[0] == 202
    assert target.https(f"Bearer {token}") == 201


def test_the_end_of_a_token_ends_its_link_and_signatures_go_on(target: Target) -> None:
    with target.client() as client, target.client() as other:
        assert target.put(client, ISSUER_KEYS.token(claims_until(int(time.time()) + 60, SENDER)))[0] == 202
        assert target.put(other, build())[0] == 202
        link = client.sender("hub1")
        other.sender("hub1")
        try:
            with target.clock(3_600_000):
                client.transfer(link, b"late")
                detach = client.expect(Detach)
                assert detach.error is not None
                assert detach.error.condition == UNAUTHORIZED
                assert other.none_of(Detach)
        finally:
            target.forget_time()


def test_what_a_removed_key_signed_ends_and_a_bad_keys_file_ends_nothing(target: Target, keys_file: Path) -> None:
    """An issuer rotates its keys; somebody then writes rubbish. Waits end with what they wait for, or after 5 s."""
    fresh = TestIssuer()
    before = keys_file.read_bytes()
    with target.client() as client:
        assert target.put(client, good(OWNER))[0] == 202
        client.sender("hub1")
        keys_file.write_bytes(fresh.keys_file())
        assert client.expect(Detach).error.condition == UNAUTHORIZED
    assert target.https(good(OWNER)) == 401
    control = fresh.token(claims_until(LATE, OWNER))
    assert target.https(control) == 201
    keys_file.write_bytes(b"rubbish")
    wait_until(lambda: any(ISSUER in alarm for alarm in map(str, target.namespace.service.alarms.current())))
    assert target.https(control) == 201
    keys_file.write_bytes(before)
    wait_until(lambda: target.https(good(OWNER)) == 201)


def wait_until(holds: Callable[[], bool], *, seconds: float = 5.0) -> None:
    """Let the service run, which looks at the file at its own pace, until this holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to be in time"
        time.sleep(0.02)
