"""A verified token covers what lies on this namespace and under its own resource, and nothing else."""

import pytest

from hubweir.auth.resource_scope import Scope
from hubweir.auth.verified_token import VerifiedToken
from hubweir.namespace.rights import Rights


@pytest.mark.parametrize(
    ("audience", "covered"),
    [
        (Scope("h", ("hub",)), True),
        (Scope("alias", ("hub", "partitions", "0")), True),
        (Scope("h", ("hub1",)), False),
        (Scope("h", ()), False),
        (Scope("stranger", ("hub",)), False),
    ],
)
def test_a_token_of_a_hub_covers_the_hub_on_every_host_of_the_namespace(audience: Scope, covered: bool) -> None:
    token = VerifiedToken(Scope("h", ("hub",)), Rights.SEND, 0, "rule", "text", frozenset(("h", "alias")))
    assert token.covers(audience) is covered


def test_without_hosts_every_host_is_the_namespace() -> None:
    token = VerifiedToken(Scope("h", ("hub",)), Rights.SEND, 0, "", "text")
    assert token.covers(Scope("any", ("hub",)))
