import gc
import os
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from hubweir.cli.main import COMMANDS, OUTPUT_CLOSED, hubweir
from hubweir.cli.tests.typed_commands import Typed
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.testing.held_ports import HeldPorts
from hubweir.testing.running_namespace import RunningNamespace


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_menu_exists_and_explains_itself(name: str) -> None:
    shown = CliRunner().invoke(hubweir, [name, "--help"])
    assert shown.exit_code == 0
    assert "Usage:" in shown.output


def test_menu_imports_no_command() -> None:
    program = "import sys; from hubweir.cli.main import hubweir; print('hubweir.cli.serve' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.strip() == "False"
    assert import_module("hubweir.cli.serve")  # so the name asked for is the right one


class Imports:
    """Stands for the import of a command's module. seen: what was done, and whether there were collections."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, problem: Exception | None = None) -> None:
        self.seen: list[tuple[str, bool]] = []
        self._problem = problem
        monkeypatch.setattr("hubweir.cli.main.importlib.import_module", self._import)

    def _import(self, name: str) -> SimpleNamespace:
        self.seen.append(("imported", gc.isenabled()))
        if self._problem is not None:
            raise self._problem
        return SimpleNamespace(serve=click.command(lambda: self.seen.append(("run", gc.isenabled()))))


def test_a_command_is_imported_without_collections_and_runs_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    imports = Imports(monkeypatch)
    assert CliRunner().invoke(hubweir, ["serve"]).exit_code == 0
    assert imports.seen == [("imported", False), ("run", True)]


@pytest.mark.parametrize("is_enabled", [True, False])
@pytest.mark.parametrize(
    ("typed", "problem"), [("serve", None), ("serve", ImportError("no such module")), ("serv", None)]
)
def test_whatever_becomes_of_an_import_collections_are_as_they_were_before(
    monkeypatch: pytest.MonkeyPatch, typed: str, problem: Exception | None, is_enabled: bool
) -> None:
    Imports(monkeypatch, problem)
    if not is_enabled:
        gc.disable()
    try:
        CliRunner().invoke(hubweir, [typed])
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable()


@pytest.mark.parametrize("module", ["hubweir.cli.main", "hubweir.service.broker_process"])
def test_a_process_of_hubweir_ends_without_a_collection(module: str) -> None:
    assert "collected" not in said_of_a_circle(f"from {module} import main; main()")


def test_control_another_process_collects_when_it_ends() -> None:
    assert "collected" in said_of_a_circle("")


CIRCLE = """
import sys
sys.argv[1:] = ["--version"]
class Thing:
    def __del__(self): print("collected")
try:
    {program}
finally:
    thing = Thing()
    thing.known = thing
    del thing
"""


def said_of_a_circle(program: str) -> str:
    """What a process prints that runs the program, and has a circle of objects when it ends."""
    # A broker process ends at once, with an error, for want of a document on its standard input.
    command = [sys.executable, "-c", CIRCLE.format(program=program or "pass")]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60).stdout


def test_refusal_is_one_line_and_exit_code_1() -> None:
    nobody = "Endpoint=sb://127.0.0.1:9;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
    command = [sys.executable, "-m", "hubweir", "eventhub", "list", "--connection-string", nobody]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("hubweir: cannot reach 127.0.0.1:9")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("typed", ["eventhub list", "queue list", "send orders x", "message receive orders"])
def test_where_nobody_listens_the_line_asks_whether_the_service_runs(typed: str) -> None:
    held = HeldPorts()
    nobody = (
        f"Endpoint=sb://127.0.0.1:{held.numbers[0]};SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
    )
    command = [sys.executable, "-m", "hubweir", *typed.split(), "--connection-string", nobody]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("; is `hubweir serve` running there?\n") and len(done.stderr.splitlines()) == 1


def test_a_refusal_of_a_service_that_runs_asks_nothing(namespace: RunningNamespace) -> None:
    command = [
        sys.executable,
        "-m",
        "hubweir",
        "send",
        "nowhere",
        "x",
        "--connection-string",
        namespace.connection_string(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1 and "running there" not in done.stderr


def test_a_mistyped_command_is_shown_under_its_own_name() -> None:
    command = [sys.executable, "-m", "hubweir", "eventhub", "lst"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: hubweir eventhub ") and "Did you mean 'list'" in done.stderr


# One of each way to print: events from tasks, a table of rich, JSON, lines.
PRINTING = ["receive poured", "receive poured --json", "eventhub list", "eventhub show poured --json", "config show"]


@pytest.mark.parametrize("typed", PRINTING)
def test_a_pipe_that_its_reader_closed_ends_a_command_without_a_word(
    namespace: RunningNamespace, type_command: Typed, typed: str
) -> None:
    if namespace.service.gateway.namespace.find("poured", EventHubDescription) is None:
        namespace.create_event_hub("poured", partition_count=2)
        type_command("send", "poured", *map(str, range(50)))
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "hubweir", *typed.split()],
        env={**os.environ, "HUBWEIR_CONNECTION_STRING": namespace.connection_string()},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=100,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (OUTPUT_CLOSED, "")


def test_a_broken_pipe_that_is_not_the_output_is_a_fault_like_any_other() -> None:
    program = (
        "import hubweir.cli.sas as sas; from hubweir.cli.main import hubweir\n"
        "def lost(): raise BrokenPipeError('of something else')\n"
        "sas.explain.callback = lambda **_: lost()\n"
        "hubweir(['sas', 'explain', 'x'], standalone_mode=False)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1 and "of something else" in done.stderr
