"""A description is checked before anything runs, and an error names place, key and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hubweir.pipelines.description import describe, read_file, with_settings
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.ready_made import READY_MADE

TEXT = "Endpoint=sb://localhost;SharedAccessKeyName=r;SharedAccessKey=secret;UseDevelopmentEmulator=true"
LAKE: dict[str, Any] = {"pipeline": "to-lake", "source": {"eventHub": "orders"}, "sink": {"path": "lake"}}


def test_defaults_are_filled_in() -> None:
    found = describe(LAKE, "a.toml", connection_string=TEXT)
    assert (found.name, found.checkpoint, found.trigger_s) == ("to-lake", "checkpoints/to-lake", 60.0)
    assert found.program == "hubweir.pipelines.lake.to_lake"
    assert found.sink == {"path": "lake", "format": "parquet", "compactAfter": 600.0}
    assert found.source == {"eventHub": "orders", "connectionString": TEXT, "maxEventsPerTrigger": "2000000"}


def test_the_command_lines_authority_belongs_to_its_connection_string() -> None:
    found = describe(LAKE, "a", connection_string=TEXT, ca_file="/ca.pem")
    assert found.source["caFile"] == "/ca.pem"
    own = {"eventHub": "orders", "connectionString": TEXT}
    assert "caFile" not in describe({**LAKE, "source": own}, "a", connection_string=TEXT, ca_file="/ca.pem").source
    own = {"eventHub": "orders", "eventhubs.caFile": "/own.pem"}
    assert "caFile" not in describe({**LAKE, "source": own}, "a", connection_string=TEXT, ca_file="/ca.pem").source


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(describe(LAKE, "a.toml", connection_string=TEXT))


def test_settings_of_the_command_line_stand_above_the_file() -> None:
    raw = with_settings(
        LAKE, ["trigger=once", "source.consumerGroup=lake", "sink.format=delta", "parameters.compact=no="]
    )
    assert raw["parameters"] == {"compact": "no="} and LAKE["sink"] == {"path": "lake"}
    found = describe(with_settings(LAKE, ["trigger=once", "sink.format=delta"]), "a", connection_string=TEXT)
    assert found.trigger_s is None and found.sink["format"] == "delta"


def test_toml_and_text_mean_the_same() -> None:
    typed = describe({**LAKE, "parameters": {"compact": False}}, "a", connection_string=TEXT)
    assert typed == describe(with_settings(LAKE, ["parameters.compact=false"]), "a", connection_string=TEXT)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pipeline": "to-lakes"}, "a.toml: pipeline is 'to-lakes'; allowed: to-lake, windowed-aggregates"),
        ({"pipeline": 7}, "a.toml: pipeline is '7'; allowed: text"),
        ({"pipelines": "x"}, "a.toml: pipelines is not known; allowed: pipeline, name"),
        ({"trigger": "often"}, "trigger is neither 'once' nor a duration"),
        ({"sink": {}}, "a.toml: sink.path is missing: folder of the table"),
        ({"sink": {"path": "x", "format": "csv"}}, "a.toml: sink.format is 'csv'; allowed: parquet, delta"),
        ({"sink": {"path": "x", "formats": "csv"}}, "a.toml: sink: formats is not known; allowed: path, format"),
        ({"sink": "lake"}, r"a.toml: sink is a table: \[sink\]"),
        ({"parameters": {"compact": "maybe"}}, "a.toml: parameters.compact is 'maybe'; allowed: true or false"),
        ({"pipeline": "mine:"}, "a.toml: pipeline is 'mine:'; allowed: .* or module:function"),
        ({"pipeline": ":start"}, "a.toml: pipeline is ':start'; allowed: .* or module:function"),
        ({"name": "a/../../b"}, "a.toml: name is 'a/../../b'; allowed: .* without a slash, or give checkpoint"),
        ({"name": "a\nb"}, "a.toml: name is 'a.*b'; allowed: "),
        ({"name": "ü" * 101}, "a.toml: name is 'ü*'; allowed: at most 200 bytes"),
        ({"source": {"eventHub": ["o"]}}, "a.toml: source.eventHub is a list or a table; allowed: text"),
        ({"source": {}}, "a.toml: source: no event hub is named"),
        ({"source": {"eventHub": "o", "subscribe": "t"}}, "a.toml: source: option subscribe is not taken here: use"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(change: dict[str, Any], says: str) -> None:
    with pytest.raises(IllegalDescription, match=says):
        describe({**LAKE, **change}, "a.toml", connection_string=TEXT)


@pytest.mark.parametrize("text", ["sink", "sinks.path=x", "colour=red"])
def test_a_setting_that_is_none_is_named(text: str) -> None:
    with pytest.raises(IllegalDescription, match=f"--set {text.partition('=')[0]}: write KEY=VALUE"):
        with_settings(LAKE, [text])


def test_a_program_of_ones_own_takes_what_it_is_given() -> None:
    raw = {"pipeline": "my.jobs:build", "source": {"eventHub": "orders"}, "parameters": {"any": [1, 2]}}
    found = describe(raw, "a", connection_string=TEXT)
    assert (found.program, found.name, found.parameters) == ("my.jobs:build", "my.jobs.build", {"any": [1, 2]})


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(IllegalDescription, match="none.toml cannot be read"):
        read_file(tmp_path / "none.toml")
    (tmp_path / "a.toml").write_text("pipeline = ")
    with pytest.raises(IllegalDescription, match="a.toml is no TOML"):
        read_file(tmp_path / "a.toml")
    (tmp_path / "a.toml").write_text('pipeline = "to-lake"\n[source]\neventHub = "o"')
    assert read_file(tmp_path / "a.toml") == {"pipeline": "to-lake", "source": {"eventHub": "o"}}


def test_every_default_is_a_value_of_its_field() -> None:
    for entry in READY_MADE.values():
        for field in (*entry.parameters, *entry.sink):
            if field.default not in (None, "", ()) and not isinstance(field.default, float):
                assert field.read(field.default, "x") == field.default
