"""One run of a program against a server of its own, and the verdict on each of its checks."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hubweir.auth.shared_access_signature import make_token
from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE
from hubweir.testing.server_process import ServerProcess
from tests.conformance.foreign.queue_checks import create_queues
from tests.conformance.foreign.toolchain import HERE, NotRun, Program, prepare
from tests.conformance.foreign.topic_checks import TOPIC_CHECKS, create_topics
from tests.conformance.ways import server_process

RUN_S = 240  # of one run of all checks; each of a program's own waits is far shorter
CREATE_S = 30
SPOKEN = 1000  # characters of its stderr, and of the server's, that a failure repeats
KEY_HUBS = (2, 4, 8, 32)
TOKEN_LIFETIME_S = 3600


@dataclass(slots=True)
class ProgramRun:
    """What a program said: its verdicts by name, or why it did not run; trouble: why it ended early."""

    verdicts: dict[str, tuple[bool, str]] = field(default_factory=dict)
    not_run: str = ""
    trouble: str = ""

    def judge(self, name: str) -> None:
        """Pass, fail or skip the test of one check."""
        if self.not_run:
            pytest.skip(f"NOT RUN: {self.not_run}")
        ok, detail = self.verdicts.get(name, (False, f"the program did not get to this check; {self.trouble}"))
        assert ok, detail


def run_program(
    program: Program, tell: Callable[[str], None], brokers: int, checks: Collection[str] = ()
) -> ProgramRun:
    """Prepare and run a program on a fresh server with fresh entities.

    tell: where lines of progress go. brokers: how many broker processes; 1 is a server of one process. checks: the
    names of those that a program of queues is to do, each of which has queues of its own; none: all.
    """
    try:
        prepare(program, tell)
    except NotRun as error:
        tell(f"{program.name}: NOT RUN: {error}")
        return ProgramRun(not_run=str(error))
    with tempfile.TemporaryDirectory() as data, server_process(Path(data), brokers) as server:
        if program.uses == "queues":
            create_queues(server, Path(data), checks)
            if not checks or not TOPIC_CHECKS.keys().isdisjoint(checks):
                create_topics(server, Path(data))
        else:
            for hub, count in {"events": 4, **{f"keys-{count}": count for count in KEY_HUBS}}.items():
                create_hub(server, hub, count)
        tell(f"{program.name}: running, up to {RUN_S} s")
        environment = program.environ(surroundings(server, Path(data)))
        if program.uses == "queues":
            environment["HUBWEIR_CHECKS"] = ",".join(sorted(checks))
        return converse(program.folder, program.run, server, environment, RUN_S)


def create_hub(server: ServerProcess, name: str, partitions: int) -> None:
    where = ["--partitions", str(partitions), "--connection-string", server.connection_string()]
    command = [sys.executable, "-m", "hubweir", "eventhub", "create", name, *where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CREATE_S)
    if done.returncode:
        raise RuntimeError(f"hub {name} was not created: {done.stderr}")


def surroundings(server: ServerProcess, data: Path) -> dict[str, str]:
    """What a program finds in its environment. data: the server's folder."""
    endpoint = f"Endpoint=sb://{server.host}:{server.port}"
    expires_at_s = int(time.time()) + TOKEN_LIFETIME_S
    token = make_token(f"sb://{server.host}/events", ROOT_RULE, DEVELOPMENT_KEY, expires_at_s)
    return {
        "HUBWEIR_HOST": server.host,
        "HUBWEIR_PORT": str(server.port),
        "HUBWEIR_RULE": ROOT_RULE,
        "HUBWEIR_KEY": DEVELOPMENT_KEY,
        "HUBWEIR_HUB": "events",
        "HUBWEIR_PLAIN": server.connection_string(),
        "HUBWEIR_TLS": server.connection_string(plain=False),
        "HUBWEIR_WRONG_KEY": f"{endpoint};SharedAccessKeyName={ROOT_RULE};SharedAccessKey=wrong;"
        "UseDevelopmentEmulator=true",
        "HUBWEIR_TOKEN": f"{endpoint};SharedAccessSignature={token};UseDevelopmentEmulator=true",
        "HUBWEIR_CA_FILE": str(data / "tls" / "ca.pem"),
        "HUBWEIR_KEY_VECTORS": str(HERE / "key_vectors.json"),
        "NODE_EXTRA_CA_CERTS": str(data / "tls" / "ca.pem"),
    }


def converse(
    folder: Path, command: Sequence[str], server: ServerProcess, environment: Mapping[str, str], limit_s: float
) -> ProgramRun:
    """Run a command of a program in its folder, for so long at most, and take what it says."""
    run = ProgramRun()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    spoken: list[str] = []
    reader = threading.Thread(target=lambda: spoken.extend(process.stderr or ()), daemon=True)
    reader.start()
    limit = threading.Timer(limit_s, process.kill)
    limit.start()
    try:
        assert process.stdin is not None and process.stdout is not None  # both are pipes
        for line in process.stdout:
            said = json.loads(line)
            if "ask" in said:
                server.stop()
                server.start()
                process.stdin.write("done\n")
                process.stdin.flush()
            else:
                run.verdicts[said["check"]] = (said["ok"], said["detail"])
    except (ValueError, KeyError, OSError) as error:
        run.trouble = f"its output could not be read on: {error!r}; "
    finally:
        if run.trouble:
            process.kill()
        status = process.wait(limit_s)
        limit.cancel()
        reader.join(1)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):  # what was to be said to a program that has ended
                    stream.close()
    run.trouble += (
        f"it ended with {status} and said: {''.join(spoken)[-SPOKEN:]}\nthe server said: {server.output[-SPOKEN:]}"
    )
    return run
