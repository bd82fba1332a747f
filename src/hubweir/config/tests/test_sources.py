from pathlib import Path

import pytest

from hubweir.config.settings import BadSetting, Settings
from hubweir.config.sources import NOT_SETTINGS, load_settings


def test_without_any_source_the_defaults_hold() -> None:
    assert load_settings({}, {"PATH": "/bin"}) == Settings()


def test_flags_win_over_the_environment_that_over_a_file_that_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "hubweir.toml"
    file.write_text('data = "file"\nnamespace = "file"\nport = [1, 2]\n')
    environment = {"HUBWEIR_DATA": "environment", "HUBWEIR_NAMESPACE": "environment"}
    made = load_settings({"data": "flag", "host": None}, environment, file)
    assert (made.data, made.namespace, made.port, made.host) == ("flag", "environment", (1, 2), ("127.0.0.1",))


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "hubweir.toml"
    file.write_text('namespace = "file"\n')
    assert load_settings({}, {"HUBWEIR_CONFIG": str(file)}).namespace == "file"


def test_variables_of_the_tools_around_the_service_are_let_pass() -> None:
    assert load_settings({}, {name: "x" for name in NOT_SETTINGS if name != "HUBWEIR_CONFIG"}) == Settings()


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("HUBWEIR_PORT", "5671, 5672", "port", (5671, 5672)),
        ("HUBWEIR_HOST", "127.0.0.2,127.0.0.3,", "host", ("127.0.0.2", "127.0.0.3")),
        ("HUBWEIR_ALLOW_DEVELOPMENT_KEY", "yes", "allow_development_key", True),
        ("HUBWEIR_ALLOW_DEVELOPMENT_KEY", "FALSE", "allow_development_key", False),
        ("HUBWEIR_STOP_GRACE_MS", "250", "stop_grace_ms", 250),
    ],
)
def test_texts_of_the_environment_become_values(variable: str, text: str, name: str, value: object) -> None:
    assert getattr(load_settings({}, {variable: text}), name) == value


@pytest.mark.parametrize(
    "environment",
    [
        {"HUBWEIR_PROT": "5671"},
        {"HUBWEIR_PORT": "amqps"},
        {"HUBWEIR_PORT": "5_671"},
        {"HUBWEIR_PORT": "-1"},
        {"HUBWEIR_ALLOW_DEVELOPMENT_KEY": "maybe"},
    ],
    ids=lambda environment: "=".join(*environment.items()),
)
def test_a_typing_error_in_the_environment_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(BadSetting, match=next(iter(environment))):
        load_settings({}, environment)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("prot = 1", "'prot'"),
        ('port = "5671"', "a whole number"),
        ("port = [5671, true]", "a whole number"),
        ("data = 1", "a text"),
        ("allow_development_key = 1", "true or false"),
        ("port = ", "no TOML"),
    ],
)
def test_a_typing_error_in_a_file_is_named(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "hubweir.toml"
    file.write_text(text)
    with pytest.raises(BadSetting, match=what):
        load_settings({}, {}, file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"absent\.toml"):
        load_settings({}, {}, tmp_path / "absent.toml")


def test_a_secret_is_not_repeated_in_an_error(tmp_path: Path) -> None:
    file = tmp_path / "hubweir.toml"
    file.write_text("key = 4711")
    with pytest.raises(BadSetting) as caught:
        load_settings({}, {}, file)
    assert "4711" not in str(caught.value)


def test_an_unknown_flag_is_refused() -> None:
    with pytest.raises(BadSetting, match="'prot'"):
        load_settings({"prot": 1}, {})
