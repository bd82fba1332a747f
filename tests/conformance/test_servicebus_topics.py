"""The official Python clients of topics: messages fan out to subscriptions by rules, which come and go over HTTPS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.management import (
    CorrelationRuleFilter,
    FalseRuleFilter,
    ServiceBusAdministrationClient,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

from hubweir.amqp.messaging.message import DataBody, Message, ValueBody, encode_message
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.conftest import HOST, Serve
from tests.conformance.raw_client import RawClient
from tests.conformance.servicebus_python import is_empty, receive, receive_one, texts
from tests.conformance.test_administration import Administered

pytestmark = [pytest.mark.conformance, pytest.mark.client("azure-servicebus, blocking, plain")]
ADMINISTRATION = pytest.mark.client("azure-servicebus, administration")
Filter = SqlRuleFilter | CorrelationRuleFilter | TrueRuleFilter | FalseRuleFilter


@pytest.fixture(scope="module")
def namespace(serve: Serve) -> Iterator[RunningNamespace]:
    with serve(host=(HOST,)) as namespace:
        yield namespace


@pytest.fixture
def administration(namespace: RunningNamespace) -> Iterator[ServiceBusAdministrationClient]:
    with Administered(namespace).client() as client:
        yield client


@pytest.fixture
def client(namespace: RunningNamespace) -> Iterator[ServiceBusClient]:
    with ServiceBusClient.from_connection_string(namespace.connection_string(), retry_total=0) as client:
        yield client


@pytest.fixture
def topic(administration: ServiceBusAdministrationClient, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh topic without subscriptions."""
    name = f"topic-{abs(hash(request.node.nodeid)) % 10**10}"
    administration.create_topic(name)
    yield name
    administration.delete_topic(name)


class Topic:
    """One topic with the clients that a test has of it."""

    def __init__(self, administration: ServiceBusAdministrationClient, client: ServiceBusClient, name: str) -> None:
        self.administration, self.client, self.name = administration, client, name

    def subscribe(
        self, name: str, filters: Sequence[Filter | tuple[Filter, str]] = (TrueRuleFilter(),), **settings: object
    ) -> str:
        """A subscription with these rules, named 0, 1 and so on, some with actions."""
        self.administration.create_subscription(self.name, name, **settings)
        self.administration.delete_rule(self.name, name, "$Default")
        for place, each in enumerate(filters):
            chosen, action = each if isinstance(each, tuple) else (each, None)
            more = {} if action is None else {"action": SqlRuleAction(action)}
            self.administration.create_rule(self.name, name, str(place), filter=chosen, **more)
        return name

    def send(self, *messages: ServiceBusMessage) -> None:
        with self.client.get_topic_sender(self.name) as sender:
            sender.send_messages(list(messages))

    def got(self, subscription: str, count: int, **named: object) -> list[ServiceBusReceivedMessage]:
        """Exactly these messages, received and completed."""
        with self.client.get_subscription_receiver(self.name, subscription, **named) as receiver:
            found = receive(receiver, count)
            for message in found:
                receiver.complete_message(message)
            assert is_empty(receiver)
        return found


@pytest.fixture
def news(administration: ServiceBusAdministrationClient, client: ServiceBusClient, topic: str) -> Topic:
    return Topic(administration, client, topic)


@pytest.mark.sb(123)
@pytest.mark.feature("topics")
def test_each_subscription_has_its_own_numbers_locks_and_delivery_counts(news: Topic) -> None:
    news.subscribe("a")
    news.send(ServiceBusMessage("one", message_id="1"))
    news.subscribe("b")
    news.send(ServiceBusMessage("two"))
    with (
        news.client.get_subscription_receiver(news.name, "a") as a,
        news.client.get_subscription_receiver(news.name, "b") as b,
    ):
        one, two = receive(a, 2)
        other = receive_one(b)
        assert [each.sequence_number for each in (one, two, other)] == [1, 2, 1]
        assert [each.enqueued_sequence_number for each in (one, two, other)] == [1, 2, 2]
        assert two.message_id == other.message_id and two.lock_token != other.lock_token
        a.abandon_message(two)
        again = receive_one(a)
        assert (again.delivery_count, other.delivery_count) == (1, 0)
        b.complete_message(other)
        for message in (one, again):
            a.complete_message(message)
        assert is_empty(a) and is_empty(b)


@pytest.mark.sb(124)
@pytest.mark.feature("topics")
def test_a_topic_without_subscriptions_takes_messages(news: Topic) -> None:
    news.send(ServiceBusMessage("nobody gets this"))
    news.subscribe("late")
    news.send(ServiceBusMessage("one"))
    assert texts(news.got("late", 1)) == ["one"]


@pytest.mark.sb(19)
@pytest.mark.feature("topics")
def test_addresses_of_a_subscription_reach_it_in_every_form(namespace: RunningNamespace, news: Topic) -> None:
    news.subscribe("sub")
    for address in (
        f"/{news.name}/Subscriptions/sub",
        f"{news.name}/subscriptions/SUB",
        f"{news.name.upper()}/SUBSCRIPTIONS/SUB",
    ):
        news.send(ServiceBusMessage(address))
        with RawClient.connect((namespace.host, namespace.port)) as raw:
            raw.trusted().receiver(address, credit=1)
            [got] = raw.messages(1)
            assert isinstance(got.body, DataBody) and bytes(got.body.parts[0]) == address.encode()


@pytest.mark.sb(24)
@pytest.mark.feature("topics")
def test_a_topic_cannot_be_received_from_nor_a_subscription_sent_to(namespace: RunningNamespace, news: Topic) -> None:
    news.subscribe("sub")
    with RawClient.connect((namespace.host, namespace.port)) as raw:
        raw.trusted()
        for address, sends in ((news.name, False), (f"{news.name}/Subscriptions/sub", True)):
            assert raw.refused(address, sends=sends).condition == "amqp:not-allowed"


@ADMINISTRATION
@pytest.mark.sb(104)
@pytest.mark.feature("rules")
def test_a_new_subscription_gets_all_until_its_default_rule_is_deleted(news: Topic) -> None:
    news.administration.create_subscription(news.name, "a")
    [rule] = news.administration.list_rules(news.name, "a")
    assert rule.name == "$Default" and isinstance(rule.filter, TrueRuleFilter)
    news.send(ServiceBusMessage("before"))
    news.administration.delete_rule(news.name, "a", "$Default")
    news.send(ServiceBusMessage("after"))
    assert texts(news.got("a", 1)) == ["before"]


def told(*numbers: int, **properties: object) -> list[ServiceBusMessage]:
    return [ServiceBusMessage(str(number), application_properties=dict(properties)) for number in numbers]


@pytest.mark.sb(105)
@pytest.mark.feature("rules")
def test_a_sql_filter_compares_numbers_of_every_type_and_knows_what_is_missing(news: Topic) -> None:
    news.subscribe("many", [SqlRuleFilter("color='blue' AND quantity > 10")])
    news.subscribe("missing", [SqlRuleFilter("quantity IS NULL")])
    news.subscribe("negated", [SqlRuleFilter("NOT (quantity = 11)")])
    news.send(
        *told(1, color="blue", quantity=11), *told(2, color="blue", quantity=10.5), *told(3, color="blue", quantity=10),
        *told(4, color="red", quantity=11), *told(5, color="blue"),
    )  # fmt: skip
    assert texts(news.got("many", 2)) == ["1", "2"]
    assert texts(news.got("missing", 1)) == ["5"]
    assert texts(news.got("negated", 2)) == ["2", "3"]


@pytest.mark.sb(106)
@pytest.mark.feature("rules")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("sys.Label LIKE 'or%'", "12"), ("color IN ('red', 'blue')", "13"), ("color NOT IN ('red')", "23"),
        ("EXISTS(odd)", "2"), ("rate LIKE '10!%' ESCAPE '!'", "3"), ("[two words] = 1", "1"),
        ("\"color\" = 'green'", "2"), ("user.color = 'blue'", "3"), ("color = @wanted", "1"),
    ],
)  # fmt: skip
def test_a_sql_filter_has_the_whole_language(news: Topic, expression: str, expected: str) -> None:
    parameters = {"@wanted": "red"} if "@" in expression else None
    news.subscribe("a", [SqlRuleFilter(expression, parameters=parameters)])
    news.send(
        ServiceBusMessage("1", subject="order", application_properties={"color": "red", "two words": 1, "rate": "10"}),
        ServiceBusMessage("2", subject="orbit", application_properties={"color": "green", "odd": True, "rate": "100"}),
        ServiceBusMessage("3", subject="other", application_properties={"color": "blue", "rate": "10%"}),
    )
    assert "".join(texts(news.got("a", len(expected)))) == expected


@pytest.mark.sb(107)
@pytest.mark.feature("rules")
def test_a_correlation_filter_needs_all_its_fields_with_their_case(news: Topic) -> None:
    chosen = CorrelationRuleFilter(label="order", correlation_id="c", properties={"color": "red"})
    news.subscribe("a", [chosen])
    for number, (subject, correlation, color) in enumerate(
        [
            ("order", "c", "red"),
            ("Order", "c", "red"),
            ("order", "d", "red"),
            ("order", "c", "RED"),
            ("order", "c", "red"),
        ]
    ):
        news.send(
            ServiceBusMessage(
                str(number), subject=subject, correlation_id=correlation, application_properties={"color": color}
            )
        )
    assert texts(news.got("a", 2)) == ["0", "4"]


@pytest.mark.sb(108)
@pytest.mark.feature("rules")
def test_two_actions_and_three_filters_make_three_copies(news: Topic) -> None:
    news.subscribe(
        "a",
        [
            (SqlRuleFilter("1 = 1"), "SET n = 1"), (TrueRuleFilter(), "SET n = 2"), TrueRuleFilter(),
            SqlRuleFilter("color = 'red'"), CorrelationRuleFilter(properties={"color": "red"}),
        ],
    )  # fmt: skip
    news.send(ServiceBusMessage("x", application_properties={"color": "red"}))
    got = news.got("a", 3)
    assert texts(got) == ["x"] * 3
    assert [(each.application_properties or {}).get(b"RuleName") for each in got] == [b"0", b"1", None]
    assert [(each.application_properties or {}).get(b"n") for each in got] == [1, 2, None]


@ADMINISTRATION
@pytest.mark.sb(109)
@pytest.mark.feature("rules")
def test_actions_set_and_remove_properties(news: Topic) -> None:
    action = "SET color = 'green' SET added = quantity + 1; REMOVE old, SET sys.Label = 'changed'"
    news.subscribe("a", [(TrueRuleFilter(), action)])
    assert news.administration.get_rule(news.name, "a", "0").action.sql_expression == action
    news.send(
        ServiceBusMessage(
            "x", subject="was", application_properties={"color": "red", "quantity": 4, "old": "x", "kept": "y"}
        )
    )
    [got] = news.got("a", 1)
    assert got.subject == "changed"
    assert got.application_properties == {
        b"color": b"green", b"quantity": 4, b"kept": b"y", b"added": 5, b"RuleName": b"0",
    }  # fmt: skip


@pytest.mark.sb(27, 106, 109)
@pytest.mark.feature("rules")
def test_rules_see_the_id_that_a_message_without_one_is_given(namespace: RunningNamespace, news: Topic) -> None:
    filters = [
        SqlRuleFilter("sys.MessageId LIKE '%'"),
        (SqlRuleFilter("EXISTS(sys.MessageId)"), "SET seen = sys.MessageId"),
    ]
    news.subscribe("a", filters)
    news.subscribe("without", [SqlRuleFilter("sys.MessageId IS NULL"), SqlRuleFilter("sys.MessageId = 'id'")])
    news.subscribe("later")
    with RawClient.connect((namespace.host, namespace.port)) as raw:
        sender = raw.trusted().sender(news.name)
        for body in (b"first", b"second"):
            assert raw.publish(sender, encode_message(Message(body=DataBody((body,))))).state == Accepted()
    got = news.got("a", 4)
    assert texts(got) == ["first", "first", "second", "second"]
    ids = [str(each.message_id) for each in got]
    assert [len(each) for each in ids] == [32] * 4
    assert ids[0] == ids[1] != ids[2] == ids[3]
    seen = [(each.application_properties or {}).get(b"seen") for each in got]
    assert [each for each in seen if each is not None] == [ids[0].encode(), ids[2].encode()]
    with news.client.get_subscription_receiver(news.name, "without") as receiver:
        assert receiver.peek_messages(5) == []
    assert [str(each.message_id) for each in news.got("later", 2)] == ids[::2]


@ADMINISTRATION
@pytest.mark.sb(110)
@pytest.mark.feature("errors")
def test_sql_that_means_nothing_is_refused(news: Topic) -> None:
    news.subscribe("a")
    for chosen, action in ((SqlRuleFilter("color = "), None), (TrueRuleFilter(), SqlRuleAction("SET = 1"))):
        with pytest.raises(HttpResponseError) as refused:
            more = {} if action is None else {"action": action}
            news.administration.create_rule(news.name, "a", "bad", filter=chosen, **more)
        assert refused.value.status_code == 400
    assert [rule.name for rule in news.administration.list_rules(news.name, "a")] == ["0"]


@pytest.mark.sb(111)
@pytest.mark.feature("rules")
def test_a_filter_that_fails_dead_letters_where_that_is_enabled(news: Topic) -> None:
    bad = [SqlRuleFilter("sys.NoSuchProperty = 'x'")]
    news.subscribe("keeps", bad, dead_lettering_on_filter_evaluation_exceptions=True)
    news.subscribe("drops", bad, dead_lettering_on_filter_evaluation_exceptions=False)
    news.send(ServiceBusMessage("x"))
    [dead] = news.got("keeps", 1, sub_queue=ServiceBusSubQueue.DEAD_LETTER)
    assert dead.dead_letter_reason == "FilterException" and "NoSuchProperty" in (
        dead.dead_letter_error_description or ""
    )
    for name, sub_queue in (("keeps", None), ("drops", None), ("drops", ServiceBusSubQueue.DEAD_LETTER)):
        with news.client.get_subscription_receiver(news.name, name, sub_queue=sub_queue) as receiver:
            assert is_empty(receiver)


@pytest.mark.sb(112)
@pytest.mark.feature("rules")
def test_a_false_filter_never_matches(news: Topic) -> None:
    news.subscribe("never", [FalseRuleFilter()])
    news.subscribe("always")
    news.send(ServiceBusMessage("x"))
    assert texts(news.got("always", 1)) == ["x"]
    with news.client.get_subscription_receiver(news.name, "never") as receiver:
        assert is_empty(receiver)


@pytest.mark.feature("sessions")
def test_a_session_of_a_subscription_is_first_in_first_out(news: Topic) -> None:
    news.administration.create_subscription(news.name, "a", requires_session=True)
    news.send(*(ServiceBusMessage(str(number), session_id="even" if number % 2 == 0 else "odd") for number in range(6)))
    with news.client.get_subscription_receiver(news.name, "a", session_id="odd") as receiver:
        got = receive(receiver, 3)
        assert texts(got) == ["1", "3", "5"]
        receiver.session.set_state(b"seen 5")
        for message in got:
            receiver.complete_message(message)
    with news.client.get_subscription_receiver(news.name, "a", session_id="odd") as receiver:
        assert receiver.session.get_state() == b"seen 5"


@pytest.mark.feature("schedule")
def test_a_message_that_is_scheduled_on_a_topic_comes_at_its_time(news: Topic) -> None:
    news.subscribe("a")
    with news.client.get_topic_sender(news.name) as sender:
        when = datetime.now(UTC) + timedelta(seconds=2)
        [later, never] = sender.schedule_messages([ServiceBusMessage("later"), ServiceBusMessage("never")], when)
        sender.cancel_scheduled_messages(never)
        runtime = news.administration.get_topic_runtime_properties(news.name)
        assert runtime.scheduled_message_count == 1 and runtime.size_in_bytes > 0 and later == 1
    [got] = news.got("a", 1)
    assert str(got) == "later" and got.enqueued_time_utc >= when.replace(microsecond=when.microsecond // 1000 * 1000)


@ADMINISTRATION
@pytest.mark.sb(175)
@pytest.mark.feature("rules")
def test_counts_of_filters_and_messages_are_told(news: Topic) -> None:
    news.administration.create_subscription(news.name, "a")
    news.send(ServiceBusMessage("x"), ServiceBusMessage("y"))
    found = news.administration.get_subscription_runtime_properties(news.name, "a")
    assert (found.active_message_count, found.total_message_count) == (2, 2)
    assert news.administration.get_topic_runtime_properties(news.name).subscription_count == 1
    rule = news.administration.get_rule(news.name, "a", "$Default")
    rule.filter = SqlRuleFilter("n = 1")
    news.administration.update_rule(news.name, "a", rule)
    news.send(*told(1, n=1), *told(2, n=2))
    assert texts(news.got("a", 3)) == ["x", "y", "1"]


@pytest.mark.sb(97, 98)
@pytest.mark.feature("rules")
def test_rules_come_and_go_over_the_management_node(namespace: RunningNamespace, news: Topic) -> None:
    news.administration.create_subscription(news.name, "a")
    with RawClient.connect((namespace.host, namespace.port)) as raw:
        node = f"{news.name}/Subscriptions/a/$management"
        raw.trusted()

        def ask(operation: str, body: dict[str, object]) -> tuple[int, Any]:
            properties: dict[str, object] = {"operation": f"com.microsoft:{operation}"}
            answer = raw.request(node, Message(application_properties=properties, body=ValueBody(body)))
            code = (answer.application_properties or {})["statusCode"]
            assert isinstance(code, int)
            return code, answer.body.value if isinstance(answer.body, ValueBody) else None

        new = {"rule-name": "red", "rule-description": {"sql-filter": {"expression": "color = 'red'"}}}
        acts = {
            "rule-name": "acts",
            "rule-description": {
                "correlation-filter": {"label": "l", "properties": {"n": 1}},
                "sql-rule-action": {"expression": "SET a=1"},
            },
        }  # fmt: skip
        assert ask("add-rule", new)[0] == 200
        assert ask("add-rule", acts)[0] == 200
        assert ask("add-rule", new)[0] == 409
        assert (
            ask("add-rule", {**new, "rule-name": "b", "rule-description": {"sql-filter": {"expression": "="}}})[0]
            == 400
        )
        code, body = ask("enumerate-rules", {"skip": 0, "top": 2})
        assert code == 200 and [each["rule-description"].value[2] for each in body["rules"]] == ["$Default", "red"]
        code, body = ask("enumerate-rules", {"skip": 2, "top": 2})
        [acts_told] = [each["rule-description"].value for each in body["rules"]]
        assert acts_told[2] == "acts" and acts_told[0].value[-1] == {"n": 1}
        assert ask("enumerate-rules", {"skip": 3, "top": 2})[0] == 204
        assert ask("remove-rule", {"rule-name": "$Default"})[0] == 200
        assert ask("remove-rule", {"rule-name": "$Default"})[0] == 404
    news.send(*told(1, color="red"), *told(2, color="blue"))
    assert texts(news.got("a", 1)) == ["1"]
