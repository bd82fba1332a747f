import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.cli.tests.typed_commands import Typed
from hubweir.errors import MESSAGE_TOO_LARGE, ServiceError
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.testing.server_process import ServerProcess


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


def test_an_event_that_is_too_large_ends_the_command_after_those_before_it(type_command: Typed) -> None:
    lines = "".join(f"{number}\n" for number in range(3)) + "x" * 1_100_000 + "\n"
    before = len(read(type_command, "--partition", "3"))
    ended = type_command("send", "sent", "--partition", "3", stdin=lines)
    assert isinstance(ended.exception, ServiceError) and ended.exception.condition is MESSAGE_TOO_LARGE
    (accepted,) = re.findall(r"^([0-9]+) accepted$", ended.stderr, re.MULTILINE)
    assert len(read(type_command, "--partition", "3")) - before == int(accepted)


def test_a_service_that_is_killed_ends_the_command_with_what_became_of_its_events(tmp_path: Path) -> None:
    line = b"x" * 999 + b"\n"
    with ServerProcess(tmp_path / "data") as server:
        environment = {**os.environ, "HUBWEIR_CONNECTION_STRING": server.connection_string()}
        made = CliRunner().invoke(hubweir, ["eventhub", "create", "cut", "--partitions", "1"], env=environment)
        assert made.exit_code == 0, made.output
        command = [sys.executable, "-m", "hubweir", "send", "cut"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, env=environment, **pipes) as process:  # type: ignore[call-overload]
            for _ in range(30):  # more than what may be under way, so some of it was accepted
                process.stdin.write(line * 1_000)
            process.stdin.flush()
            server.kill9()
            out, said = process.communicate(line * 1_000, timeout=30)
        tally, reason = said.decode().splitlines()
        counts = {what: int(count) for count, what in re.findall("([0-9]+) (accepted|perhaps stored|refused)", tally)}
        assert (process.returncode, out) == (1, b"") and reason.startswith("hubweir: ")
        server.restart()
        environment["HUBWEIR_CONNECTION_STRING"] = server.connection_string()
        shown = CliRunner().invoke(hubweir, ["eventhub", "show", "cut", "--json"], env=environment)
        stored = json.loads(shown.stdout)["partitions"][0]["last_sequence_number"] + 1
        assert 0 < counts["accepted"] <= stored <= counts["accepted"] + counts.get("perhaps stored", 0)


def test_properties_and_content_type_are_those_of_each_event(type_command: Typed) -> None:
    given = ["--property", "kind=tea", "--property", "table=a=7", "--content-type", "application/json"]
    sent = type_command("send", "sent", "{}", "[]", "--key", "with properties", *given)
    assert sent.exit_code == 0
    events = [event for event in read(type_command) if event["partition_key"] == "with properties"]
    assert [event["body"] for event in events] == ["{}", "[]"]
    assert all(event["properties"] == {"kind": "tea", "table": "a=7"} for event in events)
    assert all(event["system_properties"] == {"content-type": "application/json"} for event in events)


def test_a_file_is_one_event_byte_for_byte(type_command: Typed, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"two\nlines\n")
    (tmp_path / "two").write_bytes(bytes(range(256)))
    files = ["--from-file", str(tmp_path / "one"), "--from-file", str(tmp_path / "two")]
    sent = type_command("send", "sent", "first", *files, "--key", "files")
    assert sent.output == "3 events accepted by sent\n"
    events = [event for event in read(type_command) if event["partition_key"] == "files"]
    assert [event["body"] for event in events] == ["first", "two\nlines\n", None]
    assert base64.b64decode(str(events[2]["body_base64"])) == bytes(range(256))
