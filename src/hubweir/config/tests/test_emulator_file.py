"""Whole files: the samples, both roots, several files, and whatever bytes: a value or the one typed error."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubweir.config.emulator_entities import EmulatorConfig, LogTarget, Root, Sku
from hubweir.config.emulator_file import read_emulator_files
from hubweir.config.emulator_limits import OFFICIAL_EMULATOR
from hubweir.config.problems import PROBLEMS_LIMIT, EmulatorFileError, Kind, Severity
from hubweir.config.tests.emulator_texts import (
    HUB,
    bus_file,
    file_of,
    hubs_file,
    namespaces_file,
    parse_emulator_file,
    parsed,
    problems_of,
    told,
)
from hubweir.namespace.iso_duration import WrittenDuration
from hubweir.namespace.rights import Rights

SAMPLES = Path(__file__).parent / "samples"
OFFICIAL = ("event_hubs.json", "minimal.json", "service_bus.json", "text_counts.json")
RULE = {"KeyName": "r", "Rights": ["Send"]}
DAY_MS = 86_400_000


def sample(name: str, **options: Any) -> EmulatorConfig:
    config = parse_emulator_file((SAMPLES / name).read_bytes(), file=name, **options)
    assert config.warnings == ()
    return config


@pytest.mark.parametrize("name", OFFICIAL)
def test_files_as_the_official_emulators_have_them_load_without_a_warning(name: str) -> None:
    relaxed, official = sample(name), sample(name, limits=OFFICIAL_EMULATOR, strict=True)
    assert relaxed == official
    assert relaxed.files == (name,)


def test_the_whole_official_schema_is_read() -> None:
    config = sample("event_hubs.json")
    [namespace] = config.namespaces
    assert (namespace.name, namespace.root, namespace.sku, namespace.hostnames) == (
        "emulatorNs1",
        Root.EVENT_HUBS,
        None,
        (),
    )
    assert [(hub.name, hub.partition_count, hub.consumer_groups) for hub in namespace.hubs] == [
        ("readings", 4, ("billing", "archive")),
        ("alarms/urgent", 1, ()),
    ]
    assert config.log_targets == (LogTarget.FILE, LogTarget.CONSOLE)
    place = namespace.hubs[1].partition_count_location
    assert (place.line, place.column) == (17, 56)


def test_counts_may_be_texts_and_the_default_group_may_be_named() -> None:
    hubs = sample("text_counts.json").namespaces[0].hubs
    assert [(hub.partition_count, hub.consumer_groups) for hub in hubs] == [(2, ()), (3, ())]


def test_a_service_bus_file_is_read_with_each_shape_of_a_rule() -> None:
    config = sample("service_bus.json")
    [namespace] = config.namespaces
    assert (namespace.root, namespace.hubs) == (Root.SERVICE_BUS, ())
    [topic] = namespace.topics
    by_type, by_property, everything, by_expression = topic.subscriptions
    assert everything.rules == ()
    assert by_type.rules[0].correlation_filter is not None
    assert by_type.rules[0].correlation_filter.content_type == "text/plain"
    assert by_property.rules[0].correlation_filter is not None
    assert by_property.rules[0].correlation_filter.properties == (("colour", "red"), ("size", 3))
    assert by_expression.rules[0].action == "SET sys.To = 'night-shift'"
    assert namespace.queues[0].properties.lock_duration == WrittenDuration(120_000, "PT2M")


def test_extensions_are_read_and_two_tiers_stand_side_by_side() -> None:
    config = sample("extensions.json", strict=True)
    plain, large, letters = config.namespaces
    assert (plain.sku, large.sku, letters.root) == (Sku.STANDARD, Sku.PREMIUM, Root.SERVICE_BUS)
    assert (plain.hostnames, large.hostnames) == (("plain.hubs.example", "plain"), ("large.hubs.example",))
    assert [rule.rights for rule in plain.rules] == [Rights.ALL, Rights.SEND, Rights.LISTEN]
    assert [hub.retention_ms for hub in plain.hubs] == [7 * DAY_MS, 1.5 * DAY_MS]
    assert large.rules[0].primary is not None and large.rules[0].primary.reveal() == "large-key"
    assert config.log_targets == (LogTarget.CONSOLE, LogTarget.FILE)


def test_a_byte_order_mark_changes_nothing() -> None:
    data = (SAMPLES / "event_hubs.json").read_bytes()
    assert parsed(b"\xef\xbb\xbf" + data) == parsed(data)
    assert parsed(data.decode().encode("utf-16")) == parsed(data)


@pytest.mark.parametrize(
    ("text", "targets"),
    [("File", "FILE"), ("console", "CONSOLE"), ("File,Console", "FILE CONSOLE"), ("Console, File", "CONSOLE FILE")],
)
def test_the_log_goes_to_file_or_console_or_both(text: str, targets: str) -> None:
    config = parsed(namespaces_file({"Entities": []}, LoggingConfig={"Type": text}))
    assert config.log_targets == tuple(LogTarget[target] for target in targets.split())


@pytest.mark.parametrize("text", ["", "Syslog", "File,File", "File,Console,", "File,Console,File", "File;Console"])
def test_another_place_for_the_log_is_told(text: str) -> None:
    [problem] = problems_of(namespaces_file({"Entities": []}, LoggingConfig={"Type": text}))
    assert problem.location.path == "$.UserConfig.LoggingConfig.Type"
    assert problem.allowed == '"File", "Console", "File,Console", "Console,File"'


def test_logging_may_be_missing_where_the_official_emulator_wants_it() -> None:
    data = file_of({"NamespaceConfig": [{"Entities": [HUB]}]})
    assert parsed(data).log_targets == ()
    assert told(data, limits=OFFICIAL_EMULATOR) == [("missing", "$.UserConfig.LoggingConfig")]
    assert told(namespaces_file({"Entities": []}, LoggingConfig={})) == [("missing", "$.UserConfig.LoggingConfig.Type")]
    assert told(namespaces_file({"Entities": []}, LoggingConfig=1)) == [("wrong type", "$.UserConfig.LoggingConfig")]


@pytest.mark.parametrize(
    ("data", "kind", "place"),
    [
        (b"[]", Kind.WRONG_TYPE, "c.json:1:1: $"),
        (b"{}", Kind.MISSING, "c.json:1:1: $.UserConfig"),
        (b'{"UserConfig": null}', Kind.MISSING, "c.json:1:16: $.UserConfig"),
        (b'{"UserConfig": 5}', Kind.WRONG_TYPE, "c.json:1:16: $.UserConfig"),
        (b'\n{"UserConfig":\n {}}', Kind.MISSING, "c.json:3:2: $.UserConfig"),
        (b'{"UserConfig": {"NamespaceConfig": null}}', Kind.MISSING, "c.json:1:16: $.UserConfig"),
        (b'{"UserConfig": {"NamespaceConfig": []}}', Kind.WRONG_COUNT, "c.json:1:36: $.UserConfig.NamespaceConfig"),
        (b'{"UserConfig": {"Namespaces": {}}}', Kind.WRONG_TYPE, "c.json:1:31: $.UserConfig.Namespaces"),
        (b'{"UserConfig": {"Namespaces": [7]}}', Kind.WRONG_TYPE, "c.json:1:32: $.UserConfig.Namespaces[0]"),
        (b'{"UserConfig": {"Namespaces": [{}]}} x', Kind.SYNTAX, "c.json:1:38: $"),
        (b'{"UserConfig": {"Namespaces": [{}], "Namespaces": []}}', Kind.DUPLICATE_MEMBER,
         "c.json:1:37: $.UserConfig.Namespaces"),
        (b"\xff", Kind.UNREADABLE, "c.json:1:1: $"),
    ],
)  # fmt: skip
def test_a_file_without_its_frame_is_told(data: bytes, kind: Kind, place: str) -> None:
    [problem] = problems_of(data)
    assert (problem.severity, problem.kind, str(problem.location)) == (Severity.ERROR, kind, place)


def test_a_schema_reference_is_no_problem_and_a_stray_root_member_is_a_warning() -> None:
    data = hubs_file(HUB).replace(b'{"UserConfig"', b'{"$schema": "x", "UserConfg": 1, "UserConfig"')
    [problem] = problems_of(data)
    assert problem.what == 'nothing reads this member; did you mean "UserConfig"?'
    [strict] = problems_of(data, strict=True)
    assert (problem.severity, strict.severity) == (Severity.WARNING, Severity.ERROR)


def test_the_server_member_is_warned_of_once() -> None:
    [problem] = problems_of(namespaces_file({"Entities": []}, Server={"Port": 1}))
    assert (problem.severity, problem.kind) == (Severity.WARNING, Kind.NOT_SERVED)


def test_errors_and_warnings_of_a_file_come_together_each_with_its_line() -> None:
    data = b"""{
  // two hubs
  "UserConfig": {
    "NamespaceConfig": [{
      "Hostname": ["a"],
      "Entities": [
        {"Name": "ok", "PartitionCount": "0"},
        {"name": "bad", "PartitionCount": 4, "Status": "On"},
      ],
    }],
    "LoggingConfig": {"Type": "Screen"}
  }
}"""
    with pytest.raises(EmulatorFileError) as caught:
        parse_emulator_file(data, file="c.json")
    path = "$.UserConfig.NamespaceConfig[0]"
    assert [str(problem).split("; found")[0] for problem in caught.value.problems] == [
        f"c.json:7:42: {path}.Entities[0].PartitionCount: error: PartitionCount is out of range",
        f"c.json:8:9: {path}.Entities[1].Name: error: the member Name is needed",
        f"c.json:8:56: {path}.Entities[1].Status: error: Status is none of the values it may have",
        "c.json:11:31: $.UserConfig.LoggingConfig.Type: error: this is no place for a log",
        f'c.json:8:10: {path}.Entities[1].name: warning: nothing reads this member; did you mean "Name"?',
        f'c.json:5:7: {path}.Hostname: warning: nothing reads this member; did you mean "Hostnames"?',
    ]
    assert len(caught.value.errors) == 4


def test_a_file_full_of_errors_gives_a_bounded_list() -> None:
    with pytest.raises(EmulatorFileError) as caught:
        parse_emulator_file(hubs_file(*["x"] * 5_000), file="c.json")
    assert len(caught.value.problems) == PROBLEMS_LIMIT
    assert caught.value.left_out == 4_900


def test_a_large_file_of_strange_members_is_read_in_little_time() -> None:
    members = {f"PartitionCount{number}" + "x" * 400: 1 for number in range(2_000)}
    assert len(problems_of(hubs_file({**HUB, **members}))) == PROBLEMS_LIMIT


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_files_and_folders_are_read_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    write(folder, "2.json", namespaces_file({"Name": "two", "Entities": [HUB]}, LoggingConfig={"Type": "Console"}))
    write(folder, "1.json", hubs_file(HUB, Name="one"))
    write(folder, "notes.txt", b"not read")
    last = write(tmp_path, "last.txt", bus_file(Queues=[{"Name": "q"}]))
    config = read_emulator_files([folder, last])
    assert [namespace.name for namespace in config.namespaces] == ["one", "two", "sbemulatorns"]
    assert config.files == (str(folder / "1.json"), str(folder / "2.json"), str(last))
    assert config.log_targets == (LogTarget.FILE, LogTarget.CONSOLE)
    assert config.warnings == ()


def test_a_file_with_queues_alone_is_a_namespace_of_its_own() -> None:
    config = read_emulator_files([SAMPLES / "service_bus.json"])
    (namespace,) = config.namespaces
    assert (namespace.name, len(namespace.queues), len(namespace.topics), config.warnings) == ("sbemulatorns", 1, 1, ())


def test_the_official_files_of_both_services_are_one_namespace(tmp_path: Path) -> None:
    hubs = write(tmp_path, "1.json", hubs_file(HUB, AuthorizationRules=[RULE, {**RULE, "KeyName": "r2"}]))
    bus = write(tmp_path, "2.json", bus_file(Queues=[{"Name": "q"}], AuthorizationRules=[RULE], Sku="Premium"))
    for files in ((hubs, bus), (bus, hubs)):
        (namespace,) = read_emulator_files(files).namespaces
        assert [hub.name for hub in namespace.hubs] == [HUB["Name"]]
        assert [queue.name for queue in namespace.queues] == ["q"] and namespace.sku is Sku.PREMIUM
        assert sorted(rule.name for rule in namespace.rules) == ["r", "r2"]
    assert read_emulator_files((hubs, bus)).namespaces[0].name == "emulatorNs1"


def test_a_name_under_both_roots_is_one_namespace_and_twice_under_one_an_error() -> None:
    bus = [{"Name": "ONE", "Queues": [{"Name": "q"}]}]
    config = parsed(namespaces_file({"Name": "one", "Entities": [HUB]}, Namespaces=bus))
    (namespace,) = config.namespaces
    assert (namespace.name, len(namespace.hubs), len(namespace.queues)) == ("one", 1, 1)
    with pytest.raises(EmulatorFileError):
        parsed(namespaces_file({"Name": "one", "Entities": [HUB]}, {"Name": "ONE", "Entities": []}))


def test_problems_of_all_files_are_told_together(tmp_path: Path) -> None:
    one = write(tmp_path, "one.json", hubs_file(HUB, Hostnames=["a.b"]))
    two = write(tmp_path, "two.json", hubs_file({"Name": "h"}, Hostnames=["A.B"]))
    three = write(tmp_path, "three.json", b"{")
    with pytest.raises(EmulatorFileError) as caught:
        read_emulator_files([one, two, three, tmp_path / "none.json", one])
    told = [(Path(problem.location.file).name, problem.kind) for problem in caught.value.problems]
    assert told == [
        ("none.json", Kind.UNREADABLE),
        ("two.json", Kind.DUPLICATE_NAME),
        ("two.json", Kind.MISSING),
        ("two.json", Kind.DUPLICATE_NAME),
        ("three.json", Kind.SYNTAX),
        ("one.json", Kind.DUPLICATE_NAME),
        ("one.json", Kind.DUPLICATE_NAME),
    ]


def test_nothing_to_read_is_told(tmp_path: Path) -> None:
    for paths in ([], [tmp_path], [tmp_path / "none"], [tmp_path / "none", tmp_path]):
        with pytest.raises(EmulatorFileError) as caught:
            read_emulator_files(paths)
        assert {problem.kind for problem in caught.value.problems} == {Kind.UNREADABLE}


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no space, and no memory would hold it
    with pytest.raises(EmulatorFileError, match="too large"):
        read_emulator_files([path])


def only_typed_errors(data: bytes) -> bool:
    """True when the bytes are a configuration; whatever else comes out but EmulatorFileError fails the test."""
    try:
        config = parse_emulator_file(data, file="c.json")
    except EmulatorFileError as error:
        assert error.errors
        assert str(error)
        return False
    repr(config)
    return True


@pytest.mark.parametrize("name", ["event_hubs.json", "extensions.json", "service_bus.json"])
def test_every_truncation_is_refused_by_the_typed_error(name: str) -> None:
    data = (SAMPLES / name).read_bytes().rstrip()
    assert only_typed_errors(data)
    assert not [size for size in range(len(data)) if only_typed_errors(data[:size])]


SPLICES = (
    b"null", b"true", b"-1", b"1e9", b"0.5", b'""', b"[]", b"{}", b"[[]]", b'"$default"', b"99999999999999999999",
    b'"PT"', b"\xff", b"\xed\xa0\x80", b"\\u", b'"\\ud800"', b"/*", b"//", b"NaN", b",", b":", b'"', b"\x00", b"{" * 40,
)  # fmt: skip


@pytest.mark.parametrize("name", ["event_hubs.json", "extensions.json", "service_bus.json"])
def test_random_changes_raise_nothing_but_the_typed_error(name: str, measure: Callable[[int], int]) -> None:
    data = (SAMPLES / name).read_bytes()
    generator = random.Random(name)
    legal = 0
    rounds = measure(6_000)
    for _ in range(rounds):
        changed = bytearray(data)
        for _ in range(generator.randrange(1, 4)):
            at = generator.randrange(len(changed))
            end = at + generator.choice((0, 0, 1, 2, 8, 60))
            changed[at:end] = generator.choice((b"", bytes([generator.randrange(256)]), generator.choice(SPLICES)))
        legal += only_typed_errors(bytes(changed))
    assert 0 < legal < rounds


def places_of(value: Any) -> list[tuple[Any, Any]]:
    """Return every container and key of a tree of JSON values."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places_of(value[key])]


@pytest.mark.parametrize("name", ["extensions.json", "service_bus.json"])
def test_any_value_in_any_place_raises_nothing_but_the_typed_error(name: str) -> None:
    tree = json.loads((SAMPLES / name).read_bytes())
    for container, key in places_of(tree):
        kept = container[key]
        for other in (None, True, -1, 0.5, "", "x", "PT1H", [], [[]], {}, {"a": 1}, [None], [{}]):
            container[key] = other
            only_typed_errors(json.dumps(tree).encode())
        container[key] = kept
    assert only_typed_errors(json.dumps(tree).encode())
