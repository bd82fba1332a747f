import json
from collections.abc import Callable

import pytest
from click.testing import Result

from hubweir.event_hub.partition_key import partition_of_key

Typed = Callable[..., Result]


@pytest.fixture(scope="module", autouse=True)
def hub(namespace: object) -> None:
    namespace.create_event_hub("sent", partition_count=4)  # type: ignore[attr-defined]


def read(type_command: Typed, *more: str) -> list[dict[str, object]]:
    output = type_command("receive", "sent", "--json", "--wait", "0.5", *more).stdout
    return [json.loads(line) for line in output.splitlines()]


def test_lines_of_standard_input_are_events_of_one_key_in_order(type_command: Typed) -> None:
    sent = type_command("send", "sent", "--key", "k7", stdin="".join(f"line {number}\n" for number in range(500)))
    assert sent.output == "500 events accepted by sent\n"
    events = [event for event in read(type_command) if event["partition_key"] == "k7"]
    assert [event["body"] for event in events] == [f"line {number}" for number in range(500)]
    assert {event["partition_id"] for event in events} == {str(partition_of_key(b"k7", 4))}


def test_partition_gets_what_is_sent_to_it(type_command: Typed) -> None:
    assert type_command("send", "sent", "here", "--partition", "2").exit_code == 0
    assert [event["body"] for event in read(type_command, "--partition", "2")][-1] == "here"


def test_count_stops_the_reader(type_command: Typed) -> None:
    type_command("send", "sent", "--partition", "0", stdin="1\n2\n3\n")
    stopped = type_command("receive", "sent", "--partition", "0", "--count", "2")
    assert stopped.stdout == "1\n2\n"


def test_choices_of_a_partition_exclude_each_other(type_command: Typed) -> None:
    refused = type_command("send", "sent", "x", "--key", "k", "--partition", "1")
    assert refused.exit_code == 2
    assert "exclude each other" in refused.output
