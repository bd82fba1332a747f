import json
import time
from collections.abc import Callable
from itertools import count

import pytest

from hubweir.cli.tests.typed_commands import Typed, condition_of
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.errors import MESSAGE_NOT_FOUND, NOT_FOUND
from hubweir.testing.running_namespace import RunningNamespace

_NUMBERS = count(1)
QUICK = ("--wait", "0.3")


@pytest.fixture
def new_queue(namespace: RunningNamespace) -> Callable[..., str]:
    def make(**settings: object) -> str:
        name = f"typed-{next(_NUMBERS)}"
        namespace.create_queue(name, **settings)  # type: ignore[arg-type]
        return name

    return make


@pytest.fixture
def queue(new_queue: Callable[..., str]) -> str:
    return new_queue()


def documents(output: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


def test_lines_of_standard_input_are_messages_and_are_gone_when_they_were_printed(
    type_command: Typed, queue: str
) -> None:
    sent = type_command("message", "send", queue, stdin="".join(f"line {number}\n" for number in range(3_000)))
    assert sent.output == f"3000 messages sent to {queue}\n"
    came = type_command("message", "receive", queue, *QUICK)
    assert came.stdout == "".join(f"line {number}\n" for number in range(3_000))
    assert came.stderr == "3000 messages\n"
    assert type_command("message", "peek", queue).stdout == ""


def test_every_field_that_is_typed_is_in_the_json(type_command: Typed, queue: str) -> None:
    sent = type_command(
        *("message", "send", queue, "größe", "--json", "--message-id", "m", "--subject", "s", "--session-id", "a"),
        *("--correlation-id", "c", "--content-type", "text/plain", "--reply-to", "r", "--time-to-live", "10m"),
        *("--property", "kind=big", "--property", "empty="),
    )
    assert json.loads(sent.stdout) == {"sent": 1}
    before = int(time.time() * 1000) - 60_000
    (found,) = documents(type_command("message", "peek", queue, "--json").stdout)
    assert before < int(str(found.pop("enqueued_time_ms"))) < before + 120_000
    assert found == {
        "sequence_number": 1,
        "state": "active",
        "delivery_count": 0,
        "message_id": "m",
        "session_id": "a",
        "subject": "s",
        "correlation_id": "c",
        "content_type": "text/plain",
        "reply_to": "r",
        "time_to_live_ms": 600_000,
        "properties": {"kind": "big", "empty": ""},
        "body": "größe",
    }


@pytest.mark.parametrize("settle", ["abandon", "release"])
def test_what_is_given_back_is_printed_once(type_command: Typed, queue: str, settle: str) -> None:
    type_command("message", "send", queue, "one", "two")
    assert type_command("message", "receive", queue, "--settle", settle, *QUICK).stdout == "one\ntwo\n"
    again = documents(type_command("message", "receive", queue, "--json", *QUICK).stdout)
    assert [each["delivery_count"] for each in again] == [1 if settle == "abandon" else 0] * 2


def test_deferred_messages_come_by_their_numbers(type_command: Typed, queue: str) -> None:
    type_command("message", "send", queue, "one", "two", "three")
    type_command("message", "receive", queue, "--count", "2", "--settle", "defer")
    states = [each["state"] for each in documents(type_command("message", "peek", queue, "--json").stdout)]
    assert states == ["deferred", "deferred", "active"]
    assert type_command("message", "receive", queue, "--deferred", "2", "--deferred", "1").stdout == "two\none\n"
    missing = type_command("message", "receive", queue, "--deferred", "1")
    assert condition_of(missing) is MESSAGE_NOT_FOUND


def test_a_sub_queue_a_count_and_a_first_number_choose_what_is_shown(type_command: Typed, queue: str) -> None:
    type_command("message", "send", queue, *map(str, range(6)))
    moved = type_command("message", "dead-letter", queue, "--count", "3", "--reason", "bad", "--description", "very")
    assert moved.output == f"3 messages moved to the dead letters of {queue}\n"
    dead = documents(type_command("message", "peek", queue, "--sub-queue", "dead-letter", "--json").stdout)
    assert [each["body"] for each in dead] == ["0", "1", "2"]
    assert dead[0]["properties"] == {"DeadLetterReason": "bad", "DeadLetterErrorDescription": "very"}
    assert type_command("message", "peek", queue, "--from", "5", "--count", "1").stdout == "4\n"
    taken = type_command("message", "receive", queue, "--sub-queue", "dead-letter", "--count", "1")
    assert taken.stdout == "0\n"


def test_dead_letters_are_sent_again_without_what_was_said_about_them(
    type_command: Typed, queue: str, new_queue: Callable[..., str]
) -> None:
    type_command("message", "send", queue, "one", "--message-id", "m", "--property", "kind=big")
    type_command("message", "dead-letter", queue, "--reason", "bad", *QUICK)
    assert type_command("message", "resubmit", queue, "--json", *QUICK).stdout == '{\n  "resubmitted": 1\n}\n'
    assert type_command("message", "peek", queue, "--sub-queue", "dead-letter").stdout == ""
    (found,) = documents(type_command("message", "peek", queue, "--json").stdout)
    assert (found["properties"], found["message_id"], found["sequence_number"]) == ({"kind": "big"}, "m", 2)
    other = new_queue()
    type_command("message", "dead-letter", queue, *QUICK)
    moved = type_command("message", "resubmit", queue, "--to", other, "--new-message-id", *QUICK)
    assert moved.output == f"1 message sent again to {other}\n"
    (found,) = documents(type_command("message", "receive", other, "--json", *QUICK).stdout)
    assert found["body"] == "one" and found["message_id"] not in ("m", None)


def test_purge_asks_and_leaves_what_is_deferred_and_scheduled(type_command: Typed, queue: str) -> None:
    type_command("message", "send", queue, "aside")
    type_command("message", "receive", queue, "--settle", "defer", *QUICK)
    type_command("message", "send", queue, stdin="x\n" * 5_000)
    type_command("message", "send", queue, "later", "--at", "+1h")
    assert type_command("message", "purge", queue, stdin="n\n").exit_code == 1
    assert type_command("message", "purge", queue, "--yes", "--before", "-1h").output == (
        f"0 messages deleted from {queue}\n"
    )
    assert type_command("message", "purge", queue, "--yes").output == f"5000 messages deleted from {queue}\n"
    assert type_command("message", "peek", queue).stdout == "aside\nlater\n"


def test_scheduled_messages_are_told_by_their_numbers(type_command: Typed, queue: str) -> None:
    made = type_command("message", "send", queue, "a", "b", "--at", "2099-01-31T12:00", "--json")
    assert json.loads(made.stdout) == {"sent": 2, "sequence_numbers": [1, 2]}
    plain = type_command("message", "send", queue, "c", "--at", "+1d")
    assert (plain.stdout, plain.stderr) == ("3\n", f"1 message scheduled in {queue}\n")
    states = {str(each["state"]) for each in documents(type_command("message", "peek", queue, "--json").stdout)}
    assert states == {"scheduled"}


def test_sessions_are_accepted_by_name_or_in_turn(
    namespace: RunningNamespace, type_command: Typed, new_queue: Callable[..., str]
) -> None:
    queue = new_queue(requires_session=True)
    with BlockingQueueClient.from_connection_string(namespace.connection_string()) as client:
        client.sender(queue).send(*(QueueMessage(name.encode(), session_id=name) for name in ("a", "b", "")))
    assert type_command("message", "receive", queue, "--session-id", "b", *QUICK).stdout == "b\n"
    assert type_command("message", "receive", queue, "--next-session", "--wait", "1").stdout == "a\n"
    assert type_command("message", "receive", queue, "--session-id", "", "--delete", *QUICK).stdout == "\n"


def test_a_queue_that_is_not_there_is_refused(type_command: Typed) -> None:
    for command in (("send", "nowhere", "x"), ("receive", "nowhere"), ("peek", "nowhere"), ("resubmit", "nowhere")):
        assert condition_of(type_command("message", *command)) is NOT_FOUND


def test_an_id_is_for_one_message(type_command: Typed, queue: str) -> None:
    assert type_command("message", "send", queue, "a", "b", "--message-id", "m").exit_code == 2
