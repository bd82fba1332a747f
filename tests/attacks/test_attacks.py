"""Attacks 1 to 71 on a live service, at $cbs and over HTTPS; each with its positive control. One service for all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hubweir.namespace.rights import Rights
from hubweir.testing.running_namespace import running_namespace
from tests.attacks import connections, rights, scopes, token_forms
from tests.attacks.connections import UNCLAIMED_S
from tests.attacks.table import ATTACKS, LAST, NOT_APPLICABLE, Attack
from tests.attacks.target import Target, build

HUBS = ("hub1", "hub10", "hub", "hub1x")
PARTS = (token_forms, scopes, rights, connections)  # importing them fills the table


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with running_namespace(unauthorized_connection_ms=UNCLAIMED_S * 1000) as namespace:
        for hub in HUBS:
            namespace.create_event_hub(hub, partition_count=1, consumer_groups=("mine", "mine2"))
        target = Target(namespace)
        target.set_rule("both", Rights.ALL, key="namespace key")
        target.set_rule("both", Rights.SEND, hub="hub1", key="hub key")
        yield target


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_the_attack_fails_and_its_control_succeeds(target: Target, attack: Attack) -> None:
    before = [hub.name for hub in target.gateway.management.hubs()]
    attack.run(target)
    assert [hub.name for hub in target.gateway.management.hubs()] == before
    assert target.https(build()) == 201  # neighbours are unaffected


def test_every_number_stands_in_the_table_or_has_its_reason() -> None:
    run = {attack.number for attack in ATTACKS}
    assert run | set(NOT_APPLICABLE) == set(range(1, LAST + 1))
    assert not run & set(NOT_APPLICABLE)


def test_a_service_that_took_every_signature_would_be_found_out(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control arm: with the comparison planted open, the attacks on signatures are no longer refused."""
    monkeypatch.setattr(
        "hubweir.auth.shared_access_signature.signature_matches", lambda rule, text, signature: rule is not None
    )
    for attack in ATTACKS:
        if attack.number in (4, 13, 14, 52) and "SHA-1" not in attack.name and "MD5" not in attack.name:
            with pytest.raises(AssertionError):
                attack.run(target)


def test_a_service_that_covered_by_text_would_be_found_out(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control arm: with scopes compared as text, `/hub1` reaches `/hub10`."""
    monkeypatch.setattr(
        "hubweir.auth.resource_scope.Scope.covers",
        lambda self, other: "/".join(other.segments).startswith("/".join(self.segments)),
    )
    for attack in ATTACKS:
        if attack.number == 26:
            with pytest.raises(AssertionError):
                attack.run(target)
