import dataclasses

import pytest

from hubweir.config.settings import (
    LINES,
    BadSetting,
    CheckedSettings,
    DoorSettings,
    ProcessSettings,
    Settings,
    TlsSettings,
    change,
    names_of,
)

NUMBERS = [line for line in dataclasses.fields(Settings) if line.metadata["least"] is not None]


@pytest.mark.parametrize("line", NUMBERS, ids=lambda line: line.name)
def test_every_number_is_bounded_on_both_sides(line: "dataclasses.Field[int]") -> None:
    for value in (line.metadata["least"], line.metadata["most"]):
        made = Settings(**{line.name: (value,) if line.name == "port" else value})
        assert getattr(made, line.name) in (value, (value,))
    for value in (line.metadata["least"] - 1, line.metadata["most"] + 1):
        with pytest.raises(BadSetting, match=f"{line.name} is {value}; .* are allowed"):
            Settings(**{line.name: (value,) if line.name == "port" else value})


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"host": ()}, "host is empty"),
        ({"port": ()}, "port is empty"),
        ({"tls_cert": "a.pem"}, "belong together"),
        ({"tls_key": "a.key"}, "belong together"),
        ({"jwt_issuer": "https://issuer"}, "jwt_keys_file belong together"),
        ({"jwt_keys_file": "keys.json"}, "jwt_keys_file belong together"),
        ({"jwt_issuer": "i", "jwt_keys_file": "k", "jwt_audience": ""}, "belong together"),
        ({"loop": "trio"}, "'trio'"),
        ({"broker_seam": "pipe"}, "'pipe'"),
        ({"log_level": "loud"}, "'loud'; debug, info, warning, error exist"),
        ({"log_format": "xml"}, "'xml'; text and json exist"),
        ({"key": ""}, "key is empty"),
        ({"lone_receives": True, "profile": "standard"}, "lone_receives is a switch for tests"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(values: dict[str, object], text: str) -> None:
    with pytest.raises(BadSetting, match=text):
        Settings(**values)


def test_a_flag_lifts_the_count_of_partitions() -> None:
    assert (Settings().partitions_limit, Settings(allow_more_partitions=True).partitions_limit) == (32, 1_024)


def test_the_key_is_not_shown() -> None:
    assert "very secret" not in repr(Settings(key="very secret"))


def test_a_change_is_checked_too() -> None:
    assert change(Settings(), namespace="n").namespace == "n"
    with pytest.raises(BadSetting):
        change(Settings(), port=(70_000,))


def test_every_setting_has_a_meaning_and_units_end_the_names() -> None:
    for line in dataclasses.fields(Settings):
        assert line.metadata["meaning"]
        if line.name.endswith(("timeout", "time", "size", "budget")):
            pytest.fail(f"{line.name} does not say its unit")


def test_a_table_checks_its_own_settings_alone() -> None:
    assert DoorSettings(port=(5671,)).first_bytes_ms == Settings().first_bytes_ms
    for table, values, text in (
        (ProcessSettings, {"loop": "fast"}, "loop is 'fast'"),
        (ProcessSettings, {"stores": 65}, "stores is 65; 1 to 64 are allowed"),
        (DoorSettings, {"host": ()}, "host is empty"),
        (DoorSettings, {"first_bytes_ms": 1}, "first_bytes_ms is 1; 100 to"),
        (TlsSettings, {"tls_key": "key.pem"}, "belong together"),
    ):
        with pytest.raises(BadSetting, match=text):
            table(**values)  # type: ignore[arg-type]


def test_every_setting_stands_in_one_table() -> None:
    tables = Settings.__bases__
    counted = [line.name for table in tables for line in dataclasses.fields(table)]  # type: ignore[arg-type]
    twice = {name for name in counted if counted.count(name) > 1}
    assert twice == {"max_throughput_units", "partition_cap"}  # the limits of a gateway have those of units in them
    assert len(LINES) == len({line.name for line in LINES}) == len(set(counted))


def test_the_page_has_the_tables_one_by_one() -> None:
    names = [line.name for line in LINES]
    for table in Settings.__bases__:
        own = [name for name in names if name in table.__annotations__]
        first = names.index(own[0])
        assert names[first : first + len(own)] == own, table
    assert names[: len(names_of(ProcessSettings))] == list(ProcessSettings.__annotations__)
    assert issubclass(Settings.__bases__[0], CheckedSettings)
