import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from hubweir.cli.serve import greeting
from hubweir.testing.held_ports import HeldPorts
from hubweir.testing.running_namespace import RunningNamespace
from hubweir.testing.server_process import ServerFailed, ServerProcess


def test_greeting_has_strings_to_paste_and_says_whom_to_trust(namespace: RunningNamespace) -> None:
    text = "\n".join(greeting(namespace.service))
    assert namespace.connection_string(plain=True) in text
    assert namespace.connection_string(plain=False) in text
    assert str(namespace.ca_file) in text
    assert "which everybody knows" in text
    known = namespace.service.addresses
    try:
        namespace.service.addresses = [("127.0.0.1", 7000), ("127.0.0.1", 5671)]
        assert "custom_endpoint_address" not in "\n".join(greeting(namespace.service))
        namespace.service.addresses = [("0.0.0.0", 7000)]
        assert 'custom_endpoint_address="sb://localhost:7000"' in "\n".join(greeting(namespace.service))
    finally:
        namespace.service.addresses = known
    assert f'custom_endpoint_address="sb://{namespace.host}:{namespace.port}"' in text


def test_a_config_file_that_is_wrong_ends_with_its_places(tmp_path: Path) -> None:
    file = tmp_path / "Config.json"
    file.write_text('{"UserConfig": {"NamespaceConfig": [{"Entities": [{"Name": "a", "PartitionCount": 64}]}]}}')
    process = ServerProcess(tmp_path / "data", arguments=("--emulator-config", str(file)))
    with pytest.raises(ServerFailed) as failed:
        process.start()
    assert f"{file}:1:" in str(failed.value)
    assert "Entities[0].PartitionCount: error: " in str(failed.value)


def test_the_official_ready_line_follows_ours_and_health_says_healthy(tmp_path: Path) -> None:
    file = tmp_path / "Config.json"
    file.write_text(
        '{"UserConfig": {"NamespaceConfig": [{"Entities": [{"Name": "a", "PartitionCount": 1, "Later": 1}]}],'
        ' "LoggingConfig": {"Type": "Console"}}}'
    )
    arguments = ("--emulator-config", str(file), "--profile", "official-emulator")
    with ServerProcess(tmp_path / "data", arguments=arguments, environment={"ACCEPT_EULA": "Y"}) as process:
        with urlopen(f"http://127.0.0.1:{process.port}/health", timeout=30) as answer:
            assert json.load(answer) == {"status": "healthy", "message": "Service is healthy."}
        assert process.stop() == 0
        assert "no use for: ACCEPT_EULA" in process.output
        assert "warning: nothing reads this member" in process.output
        assert process.output.index("hubweir is ready") < process.output.index("Emulator Service is Successfully Up!")


def until(holds: Callable[[], bool], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_service_that_loses_its_terminal_serves_on_and_reads_its_certificate_again(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as process:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGHUP)
        until(lambda: f"the certificate: read from {tmp_path}" in process.output)
        with urlopen(f"http://127.0.0.1:{process.port}/ready", timeout=30) as answer:
            assert answer.status == 200
        assert process.stop() == 0


def test_a_service_whose_output_nobody_reads_serves_on_and_stops_in_order(tmp_path: Path) -> None:
    held, (reader, writer) = HeldPorts(), os.pipe()
    [port] = held.numbers
    os.close(reader)
    command = [sys.executable, "-m", "hubweir", "serve", "--data", str(tmp_path / "data"), "--port", str(port)]

    def is_ready() -> bool:
        assert process.poll() is None
        try:
            with urlopen(f"http://127.0.0.1:{port}/ready", timeout=30) as answer:
                return bool(answer.status == 200)
        except URLError:
            return False

    with subprocess.Popen(command, stdout=writer, stderr=writer) as process:
        os.close(writer)
        try:
            until(is_ready)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
