"""The README's blocks marked with <!-- run --> do what they say, against a server of their own.

A console block's commands are typed one after another, and their output must be the block's, letter for letter. A
Python block is run as a program.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubweir.testing.server_process import ServerProcess
from tests.documents.console_block import steps

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SOURCE = str(ROOT / "src")
MARKED = re.compile(r"^<!-- run -->\n```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("readme") / "data") as running:
        yield running


def printed(
    arguments: list[str], server: ServerProcess, python: str | Path = sys.executable, source: str = SOURCE
) -> str:
    """What a command prints, on both streams, as a terminal would show it."""
    environment = {**os.environ, "PYTHONPATH": source, "HUBWEIR_CONNECTION_STRING": server.connection_string()}
    done = subprocess.run(
        [python, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


def do_what_the_page_says(server: ServerProcess, python: str | Path = sys.executable, source: str = SOURCE) -> None:
    """All of it in order, since each block goes on where the one before stopped.

    source: the folder where python finds hubweir; "" where it is installed. AssertionError: what is not as it says.
    """
    blocks = MARKED.findall(README)
    assert [kind for kind, _ in blocks] == ["console", "console", "python", "python"]
    for step in steps(blocks[0][1]) + steps(blocks[1][1]):
        words = shlex.split(step.command)
        assert words[:2] == ["./run", "hubweir"], f"{step.command}: only ./run hubweir is run here"
        assert printed(["-m", "hubweir", *words[2:]], server, python, source) == step.output, step.command
    outputs = ["['0', '1', '2', '3']\n", "one coffee\nthe bill, please\n"]
    for (_, program), output in zip(blocks[2:], outputs, strict=True):
        at_server = program.replace("sb://127.0.0.1;", f"sb://127.0.0.1:{server.port};")
        # The queue lies in several fragments, so the newer of two messages may come first.
        assert sorted(printed(["-c", at_server], server, python, source).splitlines()) == sorted(output.splitlines())


def test_marked_blocks_do_what_the_page_says(server: ServerProcess) -> None:
    do_what_the_page_says(server)


def test_control_arm_output_that_the_page_has_wrong_is_found(server: ServerProcess) -> None:
    [step] = steps("$ ./run hubweir eventhub list\nno event hub anywhere\n")
    assert printed(["-m", "hubweir", *shlex.split(step.command)[2:]], server) != step.output
