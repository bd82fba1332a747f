"""All rules of a topic at once give what each subscription's rules give alone; and rules come and go."""

from collections.abc import Iterable, Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Decimal32, Described, Float, Int, Symbol, Timestamp, UInt, ULong
from hubweir.topic import rule_matching, topic_rules
from hubweir.topic.correlation_filter import CorrelationFilter
from hubweir.topic.filtered_message import EncodedMessage
from hubweir.topic.like_pattern import parse_pattern
from hubweir.topic.rule import FalseFilter, Filter, Rule, SqlFilter, TrueFilter
from hubweir.topic.sql_evaluate import Evaluation
from hubweir.topic.sql_syntax import And, Comparison, Constant, Exists, In, IsNull, Like, Not, Or
from hubweir.topic.tests.given_messages import FRESH_ID, action, message, new_id, rule
from hubweir.topic.tests.plain_copies import copies_of
from hubweir.topic.tests.written_filters import predicates, system, user
from hubweir.topic.topic_rules import TopicCopies, TopicRules

DEFAULT = Rule("$Default", TrueFilter())
BLUE = message({"color": "blue", "quantity": Int(11)}, subject="order")


def alone(given_rules: Mapping[str, Iterable[Rule]], seen: EncodedMessage) -> TopicCopies[str]:
    """What plain_copies.py says, subscription by subscription."""
    each = {name: copies_of(rules, seen, new_id) for name, rules in given_rules.items()}
    return TopicCopies(
        tuple(name for name, copies in each.items() if copies.plain),
        tuple((name, copy) for name, copies in each.items() for copy in copies.changed),
        tuple((name, failure) for name, copies in each.items() for failure in copies.failed),
    )


def in_any_order(copies: TopicCopies[str]) -> tuple[list[str], ...]:
    return tuple(sorted(map(repr, part)) for part in (copies.plain, copies.changed, copies.failed))


# Against the plain way

VALUES = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0, -2.0, 2.0**53, 1e300])
    | st.sampled_from([2**53 - 1, 2**53, 2**53 + 1, -(2**53)]) | st.sampled_from(["", "a", "b", "ab"])
)  # fmt: skip
SENT = st.sampled_from(
    [
        None, True, False, 0, 1, Int(2), UInt(1), -2, 0.5, 1.0, float("nan"), float("inf"), Float(0.5), 2**53,
        2**53 + 1, ULong(2**53), 2.0**53, -(2**53), 2**53 - 1, 1e300, "", "a", "b", "ab", Symbol("a"), b"a",
        Timestamp(1), Decimal32((101 << 23 | 1).to_bytes(4, "big")), FRESH_ID,
    ]
)  # fmt: skip
NAMES = (user("a"), user("b"), system("Label"), system("To"))


CONSTANTS = VALUES.map(Constant)
# Operands that become keys and checks, but for constants of no use there.
ONE_COLUMN = st.one_of(
    st.builds(Comparison, st.sampled_from(["=", "=", "<>", "<", "<=", ">", ">="]), st.sampled_from(NAMES), CONSTANTS),
    st.builds(Comparison, st.sampled_from(["=", "<", ">="]), CONSTANTS, st.sampled_from(NAMES)),
    st.builds(In, st.sampled_from(NAMES), st.lists(CONSTANTS, min_size=1, max_size=3).map(tuple)),
    st.builds(Like, st.sampled_from(NAMES), st.sampled_from(["a", "a%", "%b", "%a%", "%"]).map(parse_pattern)),
    st.builds(lambda name: Not(IsNull(name)), st.sampled_from(NAMES)),
    st.builds(Exists, st.sampled_from(NAMES)),
)
SIMPLE = ONE_COLUMN | st.builds(
    lambda first, rest: And((first, *rest)),
    ONE_COLUMN,
    st.lists(ONE_COLUMN | ONE_COLUMN.map(Not), min_size=1, max_size=2),
)
SIMPLE = SIMPLE | st.builds(lambda first, second: Or((first, second)), SIMPLE, SIMPLE)


def filters(with_failures: bool) -> st.SearchStrategy[Filter]:
    texts = st.sampled_from([None, "a", "b", ""])
    return st.one_of(
        SIMPLE.map(lambda tree: SqlFilter(tree)),
        predicates(VALUES, NAMES, with_failures=with_failures).map(lambda tree: SqlFilter(tree)),
        st.builds(
            lambda label, to, properties: CorrelationFilter(label=label, to=to, properties=properties),
            texts, texts, st.dictionaries(st.sampled_from(["a", "B"]), VALUES),
        ),
        st.sampled_from([TrueFilter(), FalseFilter()]),
    )  # fmt: skip


ACTION = action("SET n = a + 'x' SET m = 1 / (b - 1)")


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), filters(with_failures=True), st.sampled_from([None, None, ACTION]))),
    st.lists(
        st.tuples(st.dictionaries(st.sampled_from(["a", "A", "b", "c"]), SENT), st.sampled_from([None, "a", "b"])),
        min_size=1, max_size=4,
    ),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_the_answer_is_that_of_the_plain_way(drawn, sent, random: Random) -> None:
    rules = TopicRules[str](new_id)
    known: dict[str, dict[str, Rule]] = {"x": {}, "y": {}, "z": {}}
    for number, (subscription, chosen, acts) in enumerate(drawn):
        # Names come again now and then, and their rules are replaced.
        name = f"rule {number % 8}"
        known[subscription][name] = made = Rule(name, chosen, acts)
        rules.put(subscription, made)
    messages = [message(properties, subject=subject) for properties, subject in sent]
    damaged = EncodedMessage(b"\x00\x53\x74\xc1\x03\x02\xa1\x05")  # its application properties

    def compare() -> None:
        given_rules = {subscription: named.values() for subscription, named in known.items()}
        for seen, found in zip(messages, rules.copies(messages), strict=True):
            assert in_any_order(found) == in_any_order(alone(given_rules, seen))
            assert len(set(found.plain)) == len(found.plain)
        # Here tables decide some rules without reading, such as a = NULL; what they tell as failed has failed.
        (found,), expected = rules.copies([damaged]), alone(given_rules, damaged)
        assert set(found.plain) >= set(expected.plain) and set(found.failed) <= set(expected.failed)

    compare()
    for subscription, named in known.items():
        for name in list(named):
            if random.random() < 0.5:
                del named[name]
                assert rules.remove(subscription, name.upper())
    compare()
    for subscription in known:
        rules.remove_all(subscription)
    assert rules.copies([*messages, damaged]) == [TopicCopies(())] * (len(messages) + 1)
    assert is_empty(rules)


def is_empty(rules: TopicRules[str]) -> bool:
    """Nothing is left of rules that are gone."""
    ignored = ("_new_id", "_next_number", "__orig_class__")
    return all(not value for name, value in vars(rules).items() if name not in ignored)


@settings(max_examples=1_000)
@given(
    SIMPLE.map(lambda tree: SqlFilter(tree)),
    st.dictionaries(st.sampled_from(["a", "b"]), SENT),
    st.sampled_from([None, "a"]),
)
def test_a_simple_filter_gives_what_its_tree_gives(
    chosen: Filter, properties: dict[str, object], to: str | None
) -> None:
    rules = TopicRules[str](new_id)
    rules.put("s", Rule("r", chosen))
    seen = message(properties, to=to)
    (found,) = rules.copies([seen])
    assert bool(found.plain) == rule_matching.matches(Rule("r", chosen), seen, new_id)


def test_a_message_of_which_a_part_cannot_be_read_is_judged_by_each_rule_alone() -> None:
    """Its application properties are sound, its properties are not."""
    properties = encode(Described(ULong(0x74), {"color": "blue"}))
    seen = EncodedMessage(b"\x00\x53\x73\xc0\x03\x02\xa1\x05" + properties)
    given_rules = {
        "a": [rule("r", "color = 'blue'")],
        "b": [rule("r", "sys.Label = 'x' OR color = 'blue'")],
        "c": [rule("r", "color = 'blue' OR sys.Label = 'x'")],
        "d": [rule("r", "1 = 1", "SET n = 1")],
    }
    rules = TopicRules[str](new_id)
    for subscription, (only,) in given_rules.items():
        rules.put(subscription, only)
    (found,) = rules.copies([seen])
    assert in_any_order(found) == in_any_order(alone(given_rules, seen))
    assert set(found.plain) == {"a", "c"} and [name for name, _ in found.failed] == ["b"]


def test_a_planted_mistake_is_found_by_comparing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control arm: keys that take True for 1."""
    monkeypatch.setattr(topic_rules, "key_of", lambda value: int(value) if type(value) is bool else value)
    rules = TopicRules[str](new_id)
    rules.put("s", rule("r", "a = 1"))
    seen = message({"a": True})
    (found,) = rules.copies([seen])
    assert in_any_order(found) != in_any_order(alone({"s": [rule("r", "a = 1")]}, seen))


# What the look-up is for


@pytest.mark.parametrize(
    "text",
    [
        "color = 'c{}'",
        "region = 'eu' AND color = 'c{}' AND quantity > 0",
        "quantity = {} AND region = 'eu'",
        "quantity > {} AND region <> 'us'",
        "color LIKE 'c{}%' AND quantity < 5000",
        "sys.Label IN ('a{0}', 'b{0}') OR color = 'c{0}'",
        "NOT (region <> 'eu') AND quantity NOT IN ({0}, -1)",
    ],
)
def test_2000_simple_filters_evaluate_no_tree(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = TopicRules[int](new_id)
    for number in range(2_000):
        rules.put(number, rule("r", text.format(number)))

    def no_tree(run: Evaluation, predicate: object) -> bool:
        raise AssertionError("a tree is evaluated")

    monkeypatch.setattr(Evaluation, "truth", no_tree)
    seen = message({"region": "eu", "color": "c7", "quantity": Int(7)}, subject="order")
    (found,) = rules.copies([seen])
    assert 7 in found.plain or "quantity > {}" in text or "NOT IN" in text
    assert found.plain


def test_a_rule_with_an_or_inside_is_evaluated_only_where_its_keys_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []
    real = Evaluation.truth

    def counted(run: Evaluation, predicate: object) -> bool | None:
        evaluated.append(predicate)
        return real(run, predicate)  # type: ignore[arg-type]

    rules = TopicRules[int](new_id)
    for number in range(100):
        rules.put(number, rule("r", f"quantity = {number} AND (color = 'red' OR shape IS NULL)"))
    monkeypatch.setattr(Evaluation, "truth", counted)
    assert rules.copies([BLUE])[0].plain == (11,)
    assert len(evaluated) <= 3


def test_a_topic_without_rules_on_properties_decodes_nothing() -> None:
    rules = TopicRules[str](new_id)
    rules.put("all", DEFAULT)
    torn = EncodedMessage(b"no message at all")
    assert rules.copies([torn]) == [TopicCopies(("all",))]


# Several rules, several subscriptions


def test_a_subscription_gets_one_plain_copy_however_many_rules_match() -> None:
    rules = TopicRules[str](new_id)
    for number, text in enumerate(
        ["1=1", "color = 'blue'", "color IN ('blue', 'red')", "quantity > 5", "color + '' = color"]
    ):
        rules.put("s", rule(f"r{number}", text))
    rules.put("t", rule("r", "color = 'blue' OR quantity = 11 OR sys.Label = 'order'"))
    assert in_any_order(rules.copies([BLUE])[0]) == in_any_order(TopicCopies(("s", "t")))


def test_copies_and_failures_come_in_the_order_of_their_rules() -> None:
    rules = TopicRules[str](new_id)
    rules.put("b", rule("1", "quantity + 0 = 11", "SET n = 1"))
    rules.put("a", rule("2", "sys.Nothing = 1"))
    rules.put("a", rule("3", "color = 'blue'", "SET n = 1"))
    rules.put("b", rule("4", "1 = 1", "SET n = 1 / 0"))
    rules.put("b", rule("5", "1 = 1", "SET n = 1"))
    (found,) = rules.copies([BLUE])
    assert [(subscription, copy.rule_name) for subscription, copy in found.changed] == [
        ("b", "1"),
        ("a", "3"),
        ("b", "5"),
    ]
    assert [(subscription, failure.rule_name) for subscription, failure in found.failed] == [("a", "2"), ("b", "4")]
    assert found.plain == ()


def test_an_answer_for_each_message_in_turn() -> None:
    rules = TopicRules[str](new_id)
    for color in ("red", "blue"):
        rules.put(color, rule("r", f"color = '{color}'"))
    messages = [message({"color": color}) for color in ("red", "green", "blue", "red")]
    assert [copies.plain for copies in rules.copies(messages)] == [("red",), (), ("blue",), ("red",)]
    assert rules.copies([]) == []


# Rules come and go


def test_a_rule_takes_the_place_of_the_one_of_its_name_whatever_its_case() -> None:
    rules = TopicRules[str](new_id)
    rules.put("s", rule("Blue", "color = 'blue'"))
    rules.put("t", rule("blue", "1=1"))
    rules.put("s", rule("BLUE", "color = 'red'"))
    assert rules.copies([BLUE])[0].plain == ("t",)
    assert rules.copies([message({"color": "red"})])[0].plain == ("t", "s")


def test_a_rule_that_is_not_there_is_not_removed() -> None:
    rules = TopicRules[str](new_id)
    rules.put("s", rule("a", "1=1"))
    assert not rules.remove("s", "b") and not rules.remove("t", "a")
    assert rules.copies([BLUE])[0].plain == ("s",)
    assert rules.remove("s", "A")
    assert not rules.remove("s", "a") and is_empty(rules)


def test_the_removal_of_the_default_rule_ends_deliveries() -> None:
    """SB-104."""
    rules = TopicRules[str](new_id)
    rules.put("s", DEFAULT)
    assert rules.copies([BLUE])[0].plain == ("s",)
    rules.remove("s", "$default")
    assert rules.copies([BLUE])[0].plain == ()


def test_the_rules_of_a_subscription_that_is_gone_are_removed_together() -> None:
    rules = TopicRules[str](new_id)
    for name, text in (("a", "color = 'blue'"), ("b", "1 = 1"), ("c", "quantity + 0 = 11")):
        rules.put("s", rule(name, text))
        rules.put("t", rule(name, text))
    rules.remove_all("s")
    assert rules.copies([BLUE])[0].plain == ("t",)
    rules.remove_all("t")
    rules.remove_all("never there")
    assert is_empty(rules)


def test_a_rule_that_lies_under_one_key_twice_is_removed_whole() -> None:
    rules = TopicRules[str](new_id)
    rules.put("s", rule("r", "a = 1 AND b > 1 OR a = 1 AND b < 0 OR a IN (1, 2)"))
    rules.put("t", rule("r", "a = 2"))
    rules.remove("s", "r")
    assert rules.copies([message({"a": 2, "b": 5})])[0].plain == ("t",)
    rules.remove("t", "r")
    assert is_empty(rules)


def test_5000_correlation_filters_of_one_subscription_are_one_look_up() -> None:
    rules = TopicRules[str](new_id)
    for number in range(5_000):
        rules.put("s", Rule(f"r{number}", CorrelationFilter(label=f"l{number}", properties={"n": number % 7})))
    messages = [message({"n": 3}, subject="l3"), message({"n": 3}, subject="l4")]
    assert [copies.plain for copies in rules.copies(messages)] == [("s",), ()]


def test_rules_with_sql_text_agree_with_their_trees_on_every_example() -> None:
    texts = [
        "color = 'blue'", "color <> 'red' AND quantity >= 11", "quantity IN (10, 11.0)", "NOT (quantity = 12)",
        "sys.Label LIKE 'or%'", "sys.Label LIKE '%der' AND color LIKE '%lu%'", "sys.To IS NULL AND color = 'blue'",
        "color = 'red' OR quantity > 10", "EXISTS(color)", "quantity / 2 = 5", "color IS NOT NULL",
    ]  # fmt: skip
    for text in texts:
        rules = TopicRules[str](new_id)
        rules.put("s", rule("r", text))
        assert rules.copies([BLUE])[0].plain == ("s",), text
