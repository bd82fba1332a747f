"""What SASL proved: which rights, how long, and what a changed rule does to it."""

from dataclasses import replace

from hubweir.auth.authorization_rule import AuthorizationRule, Rights, Secret
from hubweir.auth.connection_grant import ConnectionGrant

RULE = AuthorizationRule("r", Rights.SEND | Rights.LISTEN, Secret("one"), Secret("two"))


def test_a_grant_holds_for_the_rights_of_its_rule() -> None:
    grant = ConnectionGrant(RULE, Secret("one"))
    assert grant.holds(Rights.SEND, 10**15)
    assert grant.holds(Rights.SEND | Rights.MANAGE, 0)  # any one is enough
    assert not grant.holds(Rights.MANAGE, 0)


def test_a_grant_with_an_end_holds_until_then() -> None:
    grant = ConnectionGrant(RULE, ends_at_ms=1_000)
    assert grant.holds(Rights.SEND, 999)
    assert not grant.holds(Rights.SEND, 1_000)
    assert grant.has_ended(1_000) and not grant.has_ended(999)


def test_a_key_that_was_replaced_ends_the_grant_that_showed_it_and_no_other() -> None:
    renewed = replace(RULE, primary=Secret("new"))
    assert ConnectionGrant(RULE, Secret("one")).under(renewed) is None
    by_second = ConnectionGrant(RULE, Secret("two")).under(renewed)
    assert by_second is not None and by_second.rule is renewed
    by_certificate = ConnectionGrant(RULE, ends_at_ms=5).under(renewed)
    assert by_certificate is not None and (by_certificate.rule, by_certificate.ends_at_ms) == (renewed, 5)


def test_without_its_rule_no_grant_stands() -> None:
    assert ConnectionGrant(RULE, Secret("one")).under(None) is None
    assert ConnectionGrant(RULE, ends_at_ms=5).under(None) is None
