import base64
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import click
import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.cli.receive import Start
from hubweir.cli.tests.typed_commands import Typed
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind
from hubweir.testing.running_namespace import RunningNamespace


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("sequence:0", EventPosition(PositionKind.SEQUENCE_NUMBER, 0, True)),
        ("offset:4711", EventPosition(PositionKind.OFFSET, 4711, True)),
        ("2026-01-31T12:00Z", EventPosition(PositionKind.ENQUEUED_TIME, 1_769_860_800_000, True)),
        ("2026-01-31T12:00", EventPosition(PositionKind.ENQUEUED_TIME, 1_769_860_800_000, True)),
        ("2026-01-31T13:00+01:00", EventPosition(PositionKind.ENQUEUED_TIME, 1_769_860_800_000, True)),
    ],
)
def test_start_is_a_word_a_number_or_a_time(text: str, position: EventPosition) -> None:
    assert Start().convert(text, None, None) == position


@pytest.mark.parametrize("text", ["", "first", "sequence:", "sequence:-1", "sequence:٣", "offset:1.5", "31.1.2026"])
def test_anything_else_is_refused_with_what_may_stand_there(text: str) -> None:
    with pytest.raises(click.BadParameter, match="earliest, latest, sequence:N"):
        Start().convert(text, None, None)


def test_numbers_of_one_partition_are_not_asked_of_all() -> None:
    refused = CliRunner().invoke(hubweir, ["receive", "orders", "--from", "sequence:5"])
    assert refused.exit_code == 2
    assert "add one --partition" in refused.output


def test_enough_of_one_partition_ends_a_reader_that_follows_silent_ones_too(
    namespace: RunningNamespace, type_command: Typed
) -> None:
    namespace.create_event_hub("mostly-silent", partition_count=4)
    type_command("send", "mostly-silent", "one", "two", "three", "--partition", "2")
    assert type_command("receive", "mostly-silent", "--follow", "--count", "2").stdout == "one\ntwo\n"


# A shell has the jobs that it puts in the background ignore Ctrl-C, and their children inherit that: here it counts.
WITH_CTRL_C = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom hubweir.cli.main import main; main()"
)


@contextmanager
def reading(namespace: RunningNamespace, *typed: str) -> Iterator[subprocess.Popen[str]]:
    """A process with a command that reads until Ctrl-C."""
    command = [sys.executable, "-c", WITH_CTRL_C, *typed]
    environment = {**os.environ, "HUBWEIR_CONNECTION_STRING": namespace.connection_string()}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def following(namespace: RunningNamespace, hub: str) -> Iterator[subprocess.Popen[str]]:
    """A process that follows a hub and has printed the one event that is there."""
    with reading(namespace, "receive", hub, "--follow") as process:
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        yield process


def test_the_end_of_a_followed_hub_is_one_line_and_exit_code_1(
    namespace: RunningNamespace, type_command: Typed
) -> None:
    namespace.create_event_hub("short-lived", partition_count=4)
    type_command("send", "short-lived", "here", "--partition", "1")
    with following(namespace, "short-lived") as process:
        namespace.delete_event_hub("short-lived")
        _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert said.startswith("hubweir: ") and "Traceback" not in said and len(said.splitlines()) == 1


@pytest.mark.parametrize("place", ["foreground", "background"])
def test_ctrl_c_is_how_following_ends(namespace: RunningNamespace, type_command: Typed, place: str) -> None:
    """background: of a shell that ignores Ctrl-C there, which says nothing about the command."""
    hub = f"followed-in-{place}"
    namespace.create_event_hub(hub, partition_count=2)
    type_command("send", hub, "here", "--partition", "1")
    ours = signal.getsignal(signal.SIGINT)
    with ExitStack() as stack:
        if place == "background":
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            process = stack.enter_context(following(namespace, hub))
        finally:
            signal.signal(signal.SIGINT, ours)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, "1 event\n")


def test_a_body_that_is_no_text_is_whole_in_the_json(namespace: RunningNamespace, type_command: Typed) -> None:
    namespace.create_event_hub("mixed")
    bodies = [b"text", "größe".encode(), b"\x00\xff\xfe", b""]
    with BlockingEventHubClient.from_connection_string(namespace.connection_string(), "mixed") as client:
        client.sender().send(bodies)
    lines = type_command("receive", "mixed", "--json", "--count", "4").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [each["body"] for each in found] == ["text", "größe", None, ""]
    assert [base64.b64decode(each["body_base64"]) for each in found if "body_base64" in each] == [bodies[2]]


def test_tail_prints_what_comes_from_now_on_until_ctrl_c(namespace: RunningNamespace, type_command: Typed) -> None:
    namespace.create_event_hub("tailed", partition_count=1)
    type_command("send", "tailed", "before")
    with reading(namespace, "tail", "tailed") as process:
        assert process.stdout is not None
        for _ in range(300):  # nothing says when it reads
            type_command("send", "tailed", "behind")
            if select.select([process.stdout], [], [], 0.2)[0]:
                break
        assert process.stdout.readline() == "behind\n"
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=30)
    assert process.returncode == 0 and "before" not in printed
    assert said.endswith((" events\n", "1 event\n"))


def test_a_document_has_what_other_clients_send(namespace: RunningNamespace, type_command: Typed) -> None:
    namespace.create_event_hub("rich", partition_count=1)
    with EventHubProducerClient.from_connection_string(namespace.connection_string(), eventhub_name="rich") as client:
        event = EventData("x")
        event.message_id, event.correlation_id, event.content_type = "m", "c", "text/plain"
        event.properties = {"count": 3, "name": "tea", b"raw": b"\x00"}
        valued = AmqpAnnotatedMessage(value_body={"price": 2}, annotations={"mine": "yes"})
        client.send_event(event)
        client.send_event(valued)
    lines = type_command("receive", "rich", "--json", "--count", "2").stdout.splitlines()
    first, second = (json.loads(line) for line in lines)
    assert first["properties"] == {"count": 3, "name": "tea", "raw": "AA=="}
    expected = {"message-id": "m", "correlation-id": "c", "content-type": "text/plain"}
    assert {name: first["system_properties"].get(name) for name in expected} == expected
    assert (second["body"], second["body_value"]) == (None, {"price": 2})
    assert second["system_properties"]["mine"] == "yes"
    assert not {"x-opt-offset", "x-opt-sequence-number"} & second["system_properties"].keys()
    assert type_command("receive", "rich", "--count", "2").stdout.splitlines()[1] == '{"price": 2}'
