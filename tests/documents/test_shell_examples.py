"""What pages show for a shell runs in one, with the program `hubweir` as an installation has it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hubweir.testing.running_namespace import running_namespace
from tests.documents.console_block import steps

ROOT = Path(__file__).resolve().parents[2]
COMPLETION, HTTP = ((ROOT / f"docs/{name}.md").read_text() for name in ("completion", "http"))
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Which file of which shell the table names, and the line for it.
ROWS = re.findall(r"^\| (bash|zsh|fish)\b[^|]*\| `~/([^`]+)` \| `(.+)` \|$", COMPLETION, re.MULTILINE)
# How a shell is asked whether it completes the program, once it has read its file.
ASKED = {
    "bash": ("bash", "-c", ". ~/.bashrc; complete -p hubweir"),
    "zsh": ("zsh", "-c", "autoload -U compinit; compinit -u; . ~/.zshrc; print $_comps[hubweir]"),
    "fish": ("fish", "-c", "complete -C 'hubweir eventh'"),
}


def in_shell(home: Path, *command: str, **variables: str) -> str:
    """What a program prints, in a home of its own; its error stream where it fails."""
    programs = home / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "hubweir").write_text(f'#!/bin/sh\nexec {sys.executable} -m hubweir "$@"\n')
    (programs / "hubweir").chmod(0o755)
    path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
    environment = {"HOME": str(home), "PATH": path, "PYTHONPATH": str(ROOT / "src"), **variables}
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_table_has_three_shells() -> None:
    assert [shell for shell, _, _ in ROWS] == ["bash", "zsh", "fish"]


@pytest.mark.parametrize(("shell", "file", "line"), ROWS, ids=[row[0] for row in ROWS])
def test_the_line_of_a_shell_makes_it_complete_our_program(shell: str, file: str, line: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} is here")
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line.replace("\\|", "|") + "\n")
    assert "hubweir" in in_shell(tmp_path, *ASKED[shell]).replace("eventhub", "hubweir")


def test_what_is_printed_once_into_a_file_completes_as_well(tmp_path: Path) -> None:
    [(_, commands)] = BLOCK.findall(COMPLETION)
    in_shell(tmp_path, "bash", "-ec", commands)
    assert (tmp_path / ".bashrc").read_text() == ". ~/.hubweir-complete.bash\n"
    assert "hubweir" in in_shell(tmp_path, *ASKED["bash"])


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl is here")
def test_curl_sends_what_the_page_shows(tmp_path: Path) -> None:
    [(_, commands)] = BLOCK.findall(HTTP)
    with running_namespace() as namespace:
        namespace.create_event_hub("flights", partition_count=1)
        typed = "\n".join(step.command for step in steps(commands))
        assert ":5672/" in typed
        own = typed.replace(":5672/", f":{namespace.port}/").replace("curl ", "curl --fail --silent --show-error ")
        string = namespace.connection_string()
        in_shell(tmp_path, "bash", "-ec", own, HUBWEIR_CONNECTION_STRING=string)
        received = in_shell(
            tmp_path, "hubweir", "receive", "flights", "--count", "1", "--json", HUBWEIR_CONNECTION_STRING=string
        )
    assert '"EWR to IAH"' in received and '"UA"' in received
