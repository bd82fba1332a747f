"""The values of a file: frozen, comparable without places and keys, and what of them is not served."""

import dataclasses

import pytest

from hubweir.config.emulator_entities import EmulatorConfig
from hubweir.config.problems import Kind, Severity
from hubweir.config.tests.emulator_texts import HUB, bus_file, hubs_file, namespaces_file, parsed

CAPTURE = {"Enabled": True, "Destination": {"Name": "n"}}


def unserved(config: EmulatorConfig) -> list[tuple[str, str]]:
    assert all(problem.severity is Severity.WARNING for problem in config.unserved)
    assert all(problem.kind is Kind.NOT_SERVED for problem in config.unserved)
    return [(problem.what, problem.location.path.removeprefix("$.UserConfig.")) for problem in config.unserved]


def test_all_of_a_namespace_of_hubs_is_served() -> None:
    assert unserved(parsed(hubs_file({**HUB, "CaptureDescription": CAPTURE}))) == []


def test_each_queue_and_topic_is_named_as_not_served() -> None:
    bus = {"Name": "bus", "Queues": [{"Name": "q"}, {"Name": "r"}], "Topics": [{"Name": "t"}]}
    data = namespaces_file({"Entities": [HUB]}, Namespaces=[bus])
    assert unserved(parsed(data)) == [
        ('the queue "q" is not served by hubweir', "Namespaces[0].Queues[0].Name"),
        ('the queue "r" is not served by hubweir', "Namespaces[0].Queues[1].Name"),
        ('the topic "t" is not served by hubweir', "Namespaces[0].Topics[0].Name"),
    ]


def test_places_take_no_part_in_comparisons() -> None:
    data = bus_file(Queues=[{"Name": "q"}])
    assert parsed(data) == parsed(b"\n\n  " + data)
    assert parsed(data) != parsed(data.replace(b'"q"', b'"r"'))


def test_values_cannot_be_changed() -> None:
    config = parsed(hubs_file(HUB))
    for value, name in ((config, "files"), (config.namespaces[0], "hubs"), (config.namespaces[0].hubs[0], "name")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, ())
