"""The values of a file: frozen, comparable without places and keys, and kept as they were read."""

import dataclasses

import pytest

from hubweir.config.tests.emulator_texts import HUB, bus_file, hubs_file, parsed


def test_places_take_no_part_in_comparisons() -> None:
    data = bus_file(Queues=[{"Name": "q"}])
    assert parsed(data) == parsed(b"\n\n  " + data)
    assert parsed(data) != parsed(data.replace(b'"q"', b'"r"'))


def test_values_cannot_be_changed() -> None:
    config = parsed(hubs_file(HUB))
    for value, name in ((config, "files"), (config.namespaces[0], "hubs"), (config.namespaces[0].hubs[0], "name")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, ())
