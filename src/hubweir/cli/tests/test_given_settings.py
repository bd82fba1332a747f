"""given_settings.py: every setting can be given, flags win over the rest, and Config.json files come in below."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from hubweir.cli.given_settings import LAST_SECTION, SECTIONS, config_files, configured
from hubweir.cli.main import hubweir
from hubweir.cli.serve import serve
from hubweir.config.problems import EmulatorFileError
from hubweir.config.settings import Settings


def config(folder: Path, members: str, *, name: str = "Config.json") -> Path:
    """A Config.json of one namespace `from-file` with one hub, and these members besides."""
    file = folder / name
    file.write_text(
        '{"UserConfig": {"NamespaceConfig": [{"Type": "EventHub", "Name": "from-file", '
        '"Entities": [{"Name": "a", "PartitionCount": 1}]' + members + '}], "LoggingConfig": {"Type": "Console"}}}'
    )
    return file


def test_every_setting_has_a_flag() -> None:
    text = CliRunner().invoke(hubweir, ["serve", "--help"]).output
    missing = [line.name for line in fields(Settings) if f"--{line.name.replace('_', '-')}" not in text]
    assert missing == []


def test_value_of_the_wrong_type_is_refused_by_its_flag() -> None:
    refused = CliRunner().invoke(hubweir, ["serve", "--port", "5671,x"])
    assert refused.exit_code == 2
    assert "--port" in refused.output
    assert "'x' is not a whole number" in refused.output


def test_a_list_is_given_by_commas_or_by_several_flags() -> None:
    context = serve.make_context("serve", ["--host", "127.0.0.1,127.0.0.2", "--host", "127.0.0.3", "--port", "1"])
    assert context.params["host"] == ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    assert context.params["port"] == (1,)
    assert context.params["emulator_config"] is None


def test_without_files_the_settings_are_those_given(capsys: pytest.CaptureFixture[str]) -> None:
    settings, said = configured({"namespace": "mine"}, {"ACCEPT_EULA": "Y"}, None)
    assert settings.namespace == said.default.name == "mine" and said.further == ()
    assert said.default.places == {"name": "the flag --namespace"}
    assert capsys.readouterr().err == ""  # nobody starts the official emulators here


def test_a_config_file_wins_over_defaults_and_flags_win_over_it(tmp_path: Path) -> None:
    file = config(tmp_path, ', "ThroughputUnits": 3, "Hostnames": ["hub.example"]')
    _, said = configured({"emulator_config": (str(file),)}, {}, None)
    default = said.default
    assert (default.name, default.throughput_units, default.hostnames) == ("from-file", 3, ("hub.example",))
    given = {"emulator_config": (str(file),), "throughput_units": 5}
    _, said = configured(given, {"HUBWEIR_HOSTNAME": "other.example"}, None)
    assert (said.default.throughput_units, said.default.hostnames) == (5, ("other.example",))
    assert said.default.places["name"] == str(file)
    assert said.default.places["hostnames"] == "the environment variable HUBWEIR_HOSTNAME"


def test_a_member_that_nothing_reads_is_a_warning_on_standard_error_or_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = config(tmp_path, ', "Later": 1')
    settings, _ = configured({"emulator_config": (str(file),)}, {}, None)
    written = capsys.readouterr()
    assert written.out == "" and "warning: nothing reads this member" in written.err
    with pytest.raises(EmulatorFileError):
        configured({"emulator_config": (str(file),), "strict_config": True}, {}, None)


def test_files_are_held_to_the_limits_of_the_settings(tmp_path: Path) -> None:
    file = config(tmp_path, ', "ThroughputUnits": 40')
    with pytest.raises(EmulatorFileError, match="ThroughputUnits"):
        config_files(Settings(emulator_config=(str(file),), max_throughput_units=20))
    found = config_files(Settings(emulator_config=(str(file),), max_throughput_units=40))
    assert found.namespaces[0].throughput_units == 40


def test_help_begins_with_what_is_given_daily_and_names_each_setting_once() -> None:
    text = CliRunner().invoke(hubweir, ["serve", "--help"]).output
    sections = [line[:-1] for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert sections == [*SECTIONS, LAST_SECTION]
    assert text.index("--data") < text.index("Names and further namespaces:") < text.index("--tls-cert")
    for line in fields(Settings):
        assert len(re.findall(rf"^  --{line.name.replace('_', '-')}\b(?!-)", text, re.MULTILINE)) == 1, line.name


def test_sections_name_settings_that_are_there() -> None:
    named = [name for names in SECTIONS.values() for name in names]
    assert len(named) == len(set(named))
    assert set(named) <= {line.name for line in fields(Settings)} | {"config"}
