"""What rules of a topic cost a message: found in tables as a ratio to evaluating each rule's tree.

    ./run bench rules [RULES]               this many subscriptions with one rule each; 2,000 when no number is named

Both ways read the same encoded messages, sections and all. Times are processor time, in turns, the median of all
rounds. A simple filter should cost what it meets; arithmetic shows what a filter costs that is not simple.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from uuid import UUID

from hubweir.amqp.messaging.message import DataBody, Message, Properties, encode_message
from hubweir.amqp.types.values import Int
from hubweir.topic.correlation_filter import CorrelationFilter
from hubweir.topic.filtered_message import EncodedMessage
from hubweir.topic.rule import Filter, Rule, SqlFilter, TrueFilter
from hubweir.topic.rule_matching import matches
from hubweir.topic.sql_parser import parse_filter
from hubweir.topic.topic_rules import TopicRules

ROUNDS = 5
MESSAGES, EVALUATED_MESSAGES = 200, 10  # the trees take a thousand times as long
SHAPES = (
    "color = 'c{}'",
    "region = 'eu' AND color = 'c{}' AND quantity > 50",
    "sys.To IN ('a{0}', 'b{0}') OR color = 'c{0}'",
    "correlation filter of a label and a property",
    "quantity > {}",
    "sys.Label LIKE 'o{}%'",
    "true filter",
    "quantity + {} > 1000000",
)


def new_id() -> UUID:
    return UUID(int=1)


def filter_of(shape: str, number: int) -> Filter:
    if shape.startswith("correlation"):
        return CorrelationFilter(label="order", properties={"color": f"c{number}"})
    return TrueFilter() if shape.startswith("true") else SqlFilter(parse_filter(shape.format(number), {}))


def a_message(number: int) -> bytes:
    return encode_message(
        Message(
            properties=Properties(message_id=f"message-{number}", subject="order", to="here"),
            application_properties={"color": f"c{number}", "quantity": Int(number % 100), "region": "eu"},
            body=DataBody((bytes(200),)),
        )
    )


def seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def measure(shape: str, count: int) -> None:
    rules = [Rule("rule", filter_of(shape, number)) for number in range(count)]
    topic = TopicRules[int](new_id)
    for number, rule in enumerate(rules):
        topic.put(number, rule)
    encoded = [a_message(number) for number in range(MESSAGES)]

    def by_tables() -> list[int]:
        return [len(copies.plain) for copies in topic.copies(map(EncodedMessage, encoded))]

    def by_trees() -> list[int]:
        seen = map(EncodedMessage, encoded[:EVALUATED_MESSAGES])
        return [sum(matches(rule, message, new_id) for rule in rules) for message in seen]

    assert by_tables()[:EVALUATED_MESSAGES] == by_trees(), "the two ways differ"
    times = [(seconds(by_trees) / EVALUATED_MESSAGES, seconds(by_tables) / MESSAGES) for _ in range(ROUNDS)]
    trees, tables = (statistics.median(each) for each in zip(*times, strict=True))
    print(
        f"{shape:50} {trees * 1e6:10.0f} {tables * 1e6:10.1f} {count / trees / 1e6:8.2f} {count / tables / 1e6:8.1f} "
        f"{trees / tables:7.0f}"
    )


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    print(f"{count} subscriptions with one rule each: us a message, and millions of rules a second")
    print(f"{'filter':50} {'trees':>10} {'tables':>10} {'trees':>8} {'tables':>8} {'ratio':>7}")
    for shape in SHAPES:
        measure(shape, count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
