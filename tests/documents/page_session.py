"""What a page shows is typed in a folder of its own, at a service of its own, from its top to its end.

| on the page                            | what happens                                                              |
|----------------------------------------|---------------------------------------------------------------------------|
| `<!-- run -->`, a console block        | its commands are typed                                                    |
| `<!-- run: no service -->`, the same   | the service is stopped first                                              |
| `<!-- given`, lines with `$ `, `-->`   | they are typed as well; readers do not see what the page takes as given   |
| `<!-- file: NAME -->`, a block         | the text of the block is written into the file of that name               |

`hubweir serve` ends the service that runs, and starts one with these flags and variables on the same data folder;
address and ports are the test's. Before another command a service is started, where none runs. Paths from the root lead
into the folder. A command that is shown with output prints it, where `…` stands for what differs each time, and no
port for that of the service; one without ends with 0. Questions are answered with nothing.

As a program it types the page that it is given in the current folder, and needs nothing but hubweir.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.config.development_key import check_development_key
from hubweir.config.settings import DEVELOPMENT_KEY, Settings
from hubweir.testing.server_process import ServerProcess
from tests.documents.console_block import Step, steps

# What stands in a marked place: one of these parts is there.
_MARKED = re.compile(
    r"^<!-- given\n(?P<given>.*?)^-->$"
    r"|^<!-- run(?P<alone>: no service)? -->\n```console\n(?P<typed>.*?)^```$"
    r"|^<!-- file: (?P<name>\S+) -->\n```[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
OF_THE_TEST = ("--host", "--port")  # flags of a start that are left out


@dataclass(frozen=True, slots=True)
class Part:
    """A marked place of a page: a file, or commands. is_alone: while no service runs."""

    name: str = ""
    text: str = ""
    typed: list[Step] = field(default_factory=list)
    is_alone: bool = False


def parts(text: str) -> Iterator[Part]:
    for found in _MARKED.finditer(text):
        if found["name"]:
            yield Part(name=found["name"], text=found["text"])
        else:
            yield Part(typed=steps(found["given"] or found["typed"]), is_alone=bool(found["alone"]))


@dataclass(frozen=True, slots=True)
class Typed:
    """One command: variables in front of it, its program, its arguments, where its output goes."""

    variables: dict[str, str]
    program: str
    arguments: list[str]
    output: str | None


def read_command(command: str) -> Typed:
    words = shlex.split(command, comments=True)
    variables = {}
    while words and (found := re.fullmatch(r"([A-Z_]+)=(.*)", words[0])):
        variables[found[1]] = found[2]
        words.pop(0)
    output = None
    if ">" in words:
        *words, _, output = words
    if words[0] == "./run":  # of a checkout: `./run hubweir …`, `./run serve …`
        words = words[1:] if words[1] == "hubweir" else ["hubweir", *words[1:]]
    assert words[0] in ("hubweir", "openssl"), f"{command}: only hubweir and openssl are run here"
    return Typed(variables, words[0], words[1:], output)


class PageSession(AbstractContextManager["PageSession"]):
    """folder: where everything lies; it is the current one while this is used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.server: ServerProcess | None = None
        self._data: str | Path = "hubweir-data"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.server is not None:
            self.server.kill9()

    def problems(self, text: str) -> Iterator[str]:
        """What is not as the page says."""
        for part in parts(text):
            if part.name:
                self._path(part.name).write_text(part.text)
            if part.is_alone:
                self._stop()
            for step in part.typed:
                if problem := self.problem(step, needs_service=not part.is_alone):
                    yield problem

    def problem(self, step: Step, *, needs_service: bool = True) -> str | None:
        """What is not as the page says; None: all is."""
        typed = read_command(step.command)
        if typed.program == "openssl":
            done = subprocess.run(["openssl", *typed.arguments], capture_output=True, text=True, check=False)
            return f"{step.command}: {done.stderr}" if done.returncode else None
        if typed.arguments[0] == "serve":
            self._serve(typed.arguments[1:], typed.variables)
            return None
        if needs_service and self.server is None:
            self._serve([], {})
        arguments = [self._place(word) for word in typed.arguments]
        result = CliRunner().invoke(hubweir, arguments, env=self._environment(typed))
        printed = self._as_shown(result.output if typed.output is None else result.stderr)
        if result.exit_code:
            return f"{step.command}: exit code {result.exit_code}: {printed}{result.exception!r}"
        if typed.output is not None:
            self._path(typed.output).write_text(result.stdout)
        shown = re.escape(without_ends(step.output)).replace("…", ".*")
        if step.output and not re.fullmatch(shown, printed):
            return f"{step.command}: printed {printed!r}, not {step.output!r}"
        return None

    def _serve(self, flags: list[str], variables: dict[str, str]) -> None:
        """BadSetting for an address that the service would refuse: the test listens elsewhere."""
        self._stop()
        if "--host" in flags:
            shown = Settings(host=(flags[flags.index("--host") + 1],))
            check_development_key(shown, [variables.get("HUBWEIR_KEY", DEVELOPMENT_KEY)])
        given = list(flags)
        while own := next((flag for flag in OF_THE_TEST if flag in given), None):
            del given[given.index(own) : given.index(own) + 2]
        if "--data" in given:
            self._data = self._place(given.pop(given.index("--data") + 1))
            given.remove("--data")
        self.server = ServerProcess(self._data, arguments=[*map(self._place, given)], environment=variables)
        self.server.start()

    def _stop(self) -> None:
        if self.server is not None:
            self.server.stop()
            self.server = None

    def _environment(self, typed: Typed) -> dict[str, str]:
        where = {} if self.server is None else {"HUBWEIR_CONNECTION_STRING": self.server.connection_string()}
        return {**where, **typed.variables}

    def _place(self, word: str) -> str:
        return str(self._path(word)) if word.startswith("/") else word

    def _path(self, name: str) -> Path:
        """A file of the page, in a folder that is there."""
        path = self._folder / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _as_shown(self, output: str) -> str:
        """What a command printed, as it is on a machine of one's own."""
        if self.server is not None:
            output = output.replace(f":{self.server.port}", "")
        return without_ends(output.replace(str(self._folder), ""))


def without_ends(text: str) -> str:
    """Without the blanks that fill a table's last column."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


if __name__ == "__main__":
    with PageSession(Path.cwd()) as typed:
        sys.exit("\n".join(typed.problems(Path(sys.argv[1]).read_text())) or 0)
