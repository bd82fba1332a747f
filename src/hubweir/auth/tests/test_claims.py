"""What one connection may do, and until when."""

from dataclasses import replace

import pytest

from hubweir.auth.authorization_rule import AuthorizationRule, Rights, Secret, find_rule
from hubweir.auth.claims import CLAIMS_LIMIT, GRACE_MS, ISSUED, Claims
from hubweir.auth.connection_grant import ConnectionGrant
from hubweir.auth.high_water_time import HighWaterTime
from hubweir.auth.json_web_token import JsonWebToken
from hubweir.auth.plain import check_plain
from hubweir.auth.refusal import AuthRefused, RefusalKind
from hubweir.auth.resource_scope import Scope
from hubweir.auth.shared_access_signature import SharedAccessSignature, make_token, verify
from hubweir.auth.verified_token import VerifiedToken
from hubweir.errors import RESOURCE_LIMIT, UNAUTHORIZED, ServiceError

NOW_MS = 1_700_000_000_000
LATER_S = NOW_MS // 1000 + 600
HUB = Scope.parse("sb://h/hub")
PARTITION = Scope.parse("sb://h/hub/consumergroups/$Default/partitions/0")


class Rules:
    """Rules that a test can change, as an operator does."""

    def __init__(self) -> None:
        self.rules = tuple(
            AuthorizationRule(right.name or "", right, Secret(f"{right.name} key"), Secret("")) for right in Rights
        ) + (AuthorizationRule("ALL", Rights.ALL, Secret("ALL key"), Secret("ALL second")),)

    def find(self, name: str, scope: Scope | None = None) -> AuthorizationRule | None:
        return find_rule(name, self.rules)

    def token(self, name: str, uri: str = "sb://h/hub", *, expires_at_s: int = LATER_S) -> VerifiedToken:
        text = make_token(uri, name, f"{name} key", expires_at_s)
        return verify(SharedAccessSignature.parse(text), self.find, NOW_MS // 1000)

    def verify_again(self, token: SharedAccessSignature) -> VerifiedToken:
        return verify(token, self.find, NOW_MS // 1000)

    def change(self, name: str, **values: object) -> None:
        self.rules = tuple(
            replace(rule, **values) if rule.name == name else rule  # type: ignore[arg-type]
            for rule in self.rules
        )


def allows(claims: Claims, right: Rights, resource: Scope, now_ms: int = NOW_MS) -> bool:
    try:
        claims.check(right, resource, now_ms)
    except ServiceError as refused:
        assert refused.condition is UNAUTHORIZED
        return False
    return True


def test_nothing_is_allowed_without_a_token_and_the_text_is_the_one_that_clients_match() -> None:
    for right, name in ((Rights.SEND, "Send"), (Rights.LISTEN, "Listen"), (Rights.MANAGE, "Manage")):
        with pytest.raises(ServiceError) as refused:
            Claims().check(right, PARTITION, NOW_MS)
        assert refused.value.condition is UNAUTHORIZED
        assert refused.value.text == (
            f"Unauthorized access. '{name}' claim(s) are required to perform this operation. "
            "Resource: 'sb://h/hub/consumergroups/$default/partitions/0'."
        )


@pytest.mark.parametrize("held", [*Rights, Rights.ALL])
@pytest.mark.parametrize("needed", list(Rights))
def test_45_46_47_a_right_gives_itself_and_nothing_else(held: Rights, needed: Rights) -> None:
    claims = Claims()
    claims.put(HUB, Rules().token(held.name or ""))
    assert allows(claims, needed, PARTITION) is (needed in held)
    assert allows(claims, Rights.ALL, PARTITION)  # any of the three, as reading runtime information needs


def test_59_a_token_for_one_hub_is_none_for_another() -> None:
    claims = Claims()
    claims.put(HUB, Rules().token("ALL"))
    for other in ("sb://h/hub2", "sb://h/hu", "sb://h/", "sb://h/$management", "sb://h/other/hub"):
        assert not allows(claims, Rights.SEND, Scope.parse(other))
    assert allows(claims, Rights.SEND, HUB)


def test_a_claim_reaches_no_further_than_its_audience_though_the_token_would() -> None:
    claims = Claims()
    claims.put(Scope.parse("sb://h/hub/partitions/0"), Rules().token("SEND", "sb://h/"))
    assert allows(claims, Rights.SEND, Scope.parse("sb://h/hub/Partitions/0"))
    assert not allows(claims, Rights.SEND, Scope.parse("sb://h/hub/partitions/1"))
    assert not allows(claims, Rights.SEND, HUB)


@pytest.mark.parametrize(
    ("signed", "audience"),
    [
        ("sb://h/hub1", "sb://h/hub10"),
        ("sb://h/hub1", "sb://h/hub"),
        ("sb://h/hub/publishers/a", "sb://h/hub"),
        ("sb://h/hub/publishers/a", "sb://h/hub/publishers/ab"),
        ("sb://h/hub/consumergroups/g", "sb://h/hub/consumergroups/other"),
        ("sb://h/hub", "sb://h/"),
    ],
)
def test_26_28_39_a_token_is_not_taken_for_an_audience_it_does_not_cover(signed: str, audience: str) -> None:
    claims = Claims()
    with pytest.raises(AuthRefused) as refused:
        claims.put(Scope.parse(audience), Rules().token("ALL", signed))
    assert refused.value.kind is RefusalKind.INVALID_AUDIENCE
    assert claims.is_empty
    claims.put(Scope.parse(signed), Rules().token("ALL", signed))
    assert not claims.is_empty


def test_60_a_bad_token_after_a_good_one_changes_nothing() -> None:
    claims, rules = Claims(), Rules()
    claims.put(HUB, rules.token("SEND"))
    with pytest.raises(AuthRefused):
        claims.put(HUB, rules.token("LISTEN", "sb://h/other"))
    assert allows(claims, Rights.SEND, HUB)


def test_a_later_token_for_the_same_audience_takes_the_place_of_the_first() -> None:
    claims, rules = Claims(), Rules()
    claims.put(HUB, rules.token("SEND"))
    claims.put(Scope.parse("amqps://H:5671/HUB/"), rules.token("LISTEN"))
    assert len(claims) == 1
    assert not allows(claims, Rights.SEND, HUB)
    assert allows(claims, Rights.LISTEN, HUB)


def test_it_is_known_whether_a_token_replaces_one_of_the_same_audience() -> None:
    rules, claims = Rules(), Claims()
    assert claims.put(HUB, rules.token("ALL")) is False
    assert claims.put(PARTITION, rules.token("ALL")) is False
    assert claims.put(HUB, rules.token("SEND")) is True
    claims.delete(HUB)
    assert claims.put(HUB, rules.token("ALL")) is False


def test_claims_on_several_audiences_add_up() -> None:
    claims, rules = Claims(), Rules()
    claims.put(HUB, rules.token("SEND"))
    claims.put(PARTITION, rules.token("LISTEN"))
    assert allows(claims, Rights.SEND, PARTITION)
    assert allows(claims, Rights.LISTEN, PARTITION)
    assert not allows(claims, Rights.LISTEN, HUB)


def test_23_a_claim_ends_at_its_expiry_and_its_links_five_seconds_later() -> None:
    claims, end_ms = Claims(), LATER_S * 1000
    claims.put(HUB, Rules().token("SEND"))
    assert allows(claims, Rights.SEND, HUB, end_ms - 1)
    assert not allows(claims, Rights.SEND, HUB, end_ms)
    assert claims.next_deadline_ms() == end_ms + GRACE_MS
    assert claims.expired(end_ms + GRACE_MS - 1) == []
    with pytest.raises(ServiceError) as refused:
        claims.check(Rights.SEND, HUB, end_ms)
    assert "The token for 'sb://h/hub' expired at 2023-11-14T22:23:20Z." in refused.value.text
    assert claims.expired(end_ms + GRACE_MS) == [HUB]
    assert claims.expired(end_ms + GRACE_MS) == []
    assert claims.next_deadline_ms() is None


def test_24_setting_the_clock_back_brings_no_token_to_life() -> None:
    clock, claims = HighWaterTime(), Claims()
    claims.put(HUB, Rules().token("SEND"))
    end_ms = LATER_S * 1000
    assert allows(claims, Rights.SEND, HUB, clock.observe(NOW_MS))
    assert not allows(claims, Rights.SEND, HUB, clock.observe(end_ms + 1))
    assert not allows(claims, Rights.SEND, HUB, clock.observe(NOW_MS))
    assert clock.observe(end_ms + 2) == end_ms + 2


def test_25_49_50_claims_follow_rules_that_are_deleted_cut_rotated_or_made_again() -> None:
    rules = Rules()
    changes = {
        "deleted": (lambda: setattr(rules, "rules", ()), False, False),
        "cut": (lambda: rules.change("ALL", rights=Rights.LISTEN), False, True),
        "rotated": (lambda: rules.change("ALL", primary=Secret("new")), False, False),
        "secondary rotated": (lambda: rules.change("ALL", secondary=Secret("new")), True, True),
        "untouched": (lambda: None, True, True),
        "keys swapped": (
            lambda: rules.change("ALL", primary=Secret("new"), secondary=Secret("ALL key")),
            True,
            True,
        ),
    }
    for name, (change, sends, listens) in changes.items():
        rules.__init__()  # type: ignore[misc]
        claims = Claims()
        claims.put(HUB, rules.token("ALL"))
        change()
        changed = claims.recheck(rules.verify_again, rules.find)
        assert allows(claims, Rights.SEND, HUB) is sends, name
        assert allows(claims, Rights.LISTEN, HUB) is listens, name
        assert changed == ([] if sends else [HUB]), name


def test_a_recheck_leaves_expired_claims_to_their_grace() -> None:
    claims, rules = Claims(), Rules()
    claims.put(HUB, rules.token("SEND"))
    late = LATER_S + 1
    assert claims.recheck(lambda token: verify(token, rules.find, late), rules.find) == []
    assert claims.expired(LATER_S * 1000 + GRACE_MS) == [HUB]


def test_a_recheck_ends_json_web_tokens_whose_key_is_gone_and_no_others() -> None:
    claims = Claims()
    kept, gone = (JsonWebToken("RS256", name, "", b"", b"") for name in ("kept", "gone"))
    verified = {token: VerifiedToken(Scope("", ()), Rights.SEND, LATER_S * 1000, "", token) for token in (kept, gone)}
    claims.put(HUB, verified[kept])
    claims.put(PARTITION, verified[gone])

    def verify_again(token: SharedAccessSignature | JsonWebToken) -> VerifiedToken:
        assert isinstance(token, JsonWebToken)
        if token == gone:
            raise AuthRefused(RefusalKind.INVALID_SIGNATURE, "its key is gone")
        return verified[token]

    assert claims.recheck(verify_again, lambda name: None) == [PARTITION]
    assert allows(claims, Rights.SEND, HUB)
    assert claims.expired(LATER_S * 1000 + GRACE_MS) == [HUB]


def test_a_connection_holds_so_many_audiences_and_may_still_renew_them() -> None:
    claims, token = Claims(), Rules().token("SEND", "sb://h/")
    for number in range(CLAIMS_LIMIT):
        claims.put(Scope("h", ("hub", "partitions", str(number))), token)
    with pytest.raises(ServiceError) as refused:
        claims.put(Scope("h", ("hub", "partitions", "one more")), token)
    assert refused.value.condition is RESOURCE_LIMIT
    claims.put(Scope("h", ("hub", "partitions", "0")), token)
    assert len(claims) == CLAIMS_LIMIT


def test_a_deleted_claim_is_gone_and_the_others_stay() -> None:
    claims, rules = Claims(), Rules()
    for audience in (HUB, PARTITION):
        claims.put(audience, rules.token("LISTEN"))
    claims.delete(HUB)
    assert not allows(claims, Rights.LISTEN, HUB)
    assert allows(claims, Rights.LISTEN, PARTITION)
    claims.delete(HUB)  # again, which is nothing
    assert len(claims) == 1


def test_plain_grants_the_rights_of_its_rule_on_everything_and_follows_the_rule() -> None:
    claims, rules = Claims(), Rules()
    claims.grant(check_plain(b"\0SEND\0SEND key", rules.find))
    assert not claims.is_empty
    assert allows(claims, Rights.SEND, HUB)
    assert allows(claims, Rights.SEND, Scope.parse("sb://h/other"))
    assert not allows(claims, Rights.LISTEN, HUB)
    assert claims.recheck(rules.verify_again, rules.find) == []
    rules.change("SEND", rights=Rights.LISTEN)
    assert claims.recheck(rules.verify_again, rules.find) == [Scope("", ())]
    assert allows(claims, Rights.LISTEN, HUB) and not allows(claims, Rights.SEND, HUB)
    rules.change("SEND", primary=Secret("new"))
    assert claims.recheck(rules.verify_again, rules.find) == [Scope("", ())]
    assert claims.is_empty


def test_it_tells_the_rules_that_it_rests_on_each_once() -> None:
    rules, claims = Rules(), Claims()
    assert claims.rules == ()
    for uri, name in (("sb://h/hub", "SEND"), ("sb://h/other", "SEND"), ("sb://h/third", "LISTEN")):
        claims.put(Scope.parse(uri), rules.token(name, uri))
    assert claims.rules == ("SEND", "LISTEN")
    issued = JsonWebToken("RS256", "kept", "", b"", b"")
    claims.put(Scope.parse("sb://h/third"), VerifiedToken(Scope("", ()), Rights.SEND, LATER_S * 1000, "", issued))
    assert claims.rules == ("SEND", ISSUED)
    claims.delete(Scope.parse("sb://h/third"))
    claims.grant(ConnectionGrant(rules.rules[-1]))
    assert claims.rules == ("ALL", "SEND")
