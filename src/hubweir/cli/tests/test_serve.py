import json
from dataclasses import fields
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.cli.serve import greeting, serve
from hubweir.config.settings import Settings
from hubweir.testing.running_namespace import RunningNamespace
from hubweir.testing.server_process import ServerFailed, ServerProcess


def test_every_setting_has_a_flag() -> None:
    text = CliRunner().invoke(hubweir, ["serve", "--help"]).output
    missing = [line.name for line in fields(Settings) if f"--{line.name.replace('_', '-')}" not in text]
    assert missing == []


def test_value_of_the_wrong_type_is_refused_by_its_flag() -> None:
    refused = CliRunner().invoke(hubweir, ["serve", "--port", "5671,x"])
    assert refused.exit_code == 2
    assert "--port" in refused.output
    assert "'x' is not a whole number" in refused.output


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


def test_a_list_is_given_by_commas_or_by_several_flags() -> None:
    context = serve.make_context("serve", ["--host", "127.0.0.1,127.0.0.2", "--host", "127.0.0.3", "--port", "1"])
    assert context.params["host"] == ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    assert context.params["port"] == (1,)
    assert context.params["emulator_config"] is None
