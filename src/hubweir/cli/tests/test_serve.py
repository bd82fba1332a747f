import json
from pathlib import Path
from urllib.request import urlopen

import pytest

from hubweir.cli.serve import greeting
from hubweir.testing.running_namespace import RunningNamespace
from hubweir.testing.server_process import ServerFailed, ServerProcess


def test_greeting_has_strings_to_paste_and_says_whom_to_trust(namespace: RunningNamespace) -> None:
    text = "\n".join(greeting(namespace.service))
    assert namespace.connection_string(plain=True) in text
    assert namespace.connection_string(plain=False) in text
    assert str(namespace.ca_file) in text
    assert "which everybody knows" in text


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
        with urlopen(f"http://127.0.0.1:{process.port}/health", timeout=10) as answer:
            assert json.load(answer) == {"status": "healthy", "message": "Service is healthy."}
        assert process.stop() == 0
        assert "no use for: ACCEPT_EULA" in process.output
        assert "warning: nothing reads this member" in process.output
        assert process.output.index("hubweir is ready") < process.output.index("Emulator Service is Successfully Up!")
