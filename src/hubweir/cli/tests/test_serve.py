from dataclasses import fields

from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.cli.serve import greeting
from hubweir.config.settings import Settings
from hubweir.testing.running_namespace import RunningNamespace


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
