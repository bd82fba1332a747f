"""Files for tests: a whole Config.json around one part of it, and its problems with the part's own paths."""

import json
from typing import Any

from hubweir.config.emulator_entities import EmulatorConfig, NamespaceConfig
from hubweir.config.emulator_file import parse_emulator_files
from hubweir.config.emulator_limits import SERVICE, FileLimits
from hubweir.config.problems import EmulatorFileError, Problem, Problems

HUB = {"Name": "h", "PartitionCount": 1}


def hubs_file(*hubs: Any, **namespace: Any) -> bytes:
    """Return a file with one Event Hubs namespace of these entities."""
    return namespaces_file({"Entities": list(hubs), **namespace})


def namespaces_file(*namespaces: Any, **user_config: Any) -> bytes:
    return file_of({"NamespaceConfig": list(namespaces), "LoggingConfig": {"Type": "File"}, **user_config})


def bus_file(**namespace: Any) -> bytes:
    """Return a file with one Service Bus namespace."""
    return file_of({"Namespaces": [{"Name": "sbemulatorns", **namespace}], "Logging": {"Type": "File"}})


def file_of(user_config: Any) -> bytes:
    return json.dumps({"UserConfig": user_config}).encode()


def parse_emulator_file(
    data: bytes, *, file: str, limits: FileLimits = SERVICE, strict: bool = False
) -> EmulatorConfig:
    """Return what one file says, of this name in problems."""
    return parse_emulator_files([(file, data)], Problems(), limits=limits, strict=strict)


def parsed(data: bytes, *, limits: FileLimits = SERVICE) -> EmulatorConfig:
    """Return what the file says; it must be without problems."""
    config = parse_emulator_file(data, file="c.json", limits=limits)
    assert config.warnings == ()
    return config


def namespace_of(data: bytes, *, limits: FileLimits = SERVICE) -> NamespaceConfig:
    [namespace] = parsed(data, limits=limits).namespaces
    return namespace


def problems_of(data: bytes, *, limits: FileLimits = SERVICE, strict: bool = False) -> tuple[Problem, ...]:
    """Return all problems, those of a file that can be used too."""
    try:
        return parse_emulator_file(data, file="c.json", limits=limits, strict=strict).warnings
    except EmulatorFileError as error:
        return error.problems


def told(data: bytes, **options: Any) -> list[tuple[str, str]]:
    """Return kind and path of each problem; paths begin after the first namespace."""
    return [
        (
            problem.kind.value,
            problem.location.path.removeprefix("$.UserConfig.NamespaceConfig[0]")
            .removeprefix("$.UserConfig.Namespaces[0]")
            .removeprefix("."),
        )
        for problem in problems_of(data, **options)
    ]
