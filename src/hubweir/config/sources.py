"""Sources of settings: flags win over the environment, that over a TOML file, that over the defaults.

The variables and the mount points of the official emulators' containers count as defaults (emulator_variables.py).
In the environment a setting is `HUBWEIR_` and its name in capitals; lists are separated by commas. A TOML file has the
names of settings at its top level. Whatever is not a setting, or has the wrong type, is refused by name: a typing
error must not silently leave a default in force.
"""

from __future__ import annotations

import dataclasses
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubweir.config.emulator_variables import MOUNT_POINTS, emulator_defaults
from hubweir.config.settings import BadSetting, Settings

PREFIX = "HUBWEIR_"
# Variables of that prefix that belong to tools around the service, not to the service.
NOT_SETTINGS = frozenset(
    PREFIX + name for name in ("CONFIG", "KERNELS", "HOME", "CONNECTION_STRING", "CA_FILE", "FIRST_SEED")
)
TYPES: dict[str, Any] = typing.get_type_hints(Settings)


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """settings, and the source of each that was given, as people are told of it; the others are defaults."""

    settings: Settings
    sources: Mapping[str, str]


def load_settings(
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    file: Path | None = None,
    *,
    mount_points: Iterable[Path] = MOUNT_POINTS,
) -> Settings:
    """The settings of a service, as of `load_given`, when nobody asks where they come from."""
    return load_given(flags, environment, file, mount_points=mount_points).settings


def load_given(
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    file: Path | None = None,
    *,
    mount_points: Iterable[Path] = MOUNT_POINTS,
) -> GivenSettings:
    """The settings of a service. flags: by setting name; a flag that is None was not given.

    file: a TOML file; without it, the one that HUBWEIR_CONFIG names, if any. mount_points: where a Config.json of the
    official emulators is looked for. Raises BadSetting with the source.
    """
    values: dict[str, Any] = dict(emulator_defaults(environment, mount_points))
    sources: dict[str, str] = {}
    path = file or (Path(environment["HUBWEIR_CONFIG"]) if environment.get("HUBWEIR_CONFIG") else None)
    if path is not None:
        found = _from_file(path)
        values.update(found)
        sources.update(dict.fromkeys(found, f"the settings file {path}"))
    found = _from_environment(environment)
    values.update(found)
    sources.update({name: f"the environment variable {PREFIX}{name.upper()}" for name in found})
    for name, value in flags.items():
        if value is not None:
            sources[name] = f"the flag --{name.replace('_', '-')}"
            values[name] = _typed(_known(name, sources[name]), value, sources[name])
    return GivenSettings(Settings(**values), sources)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSetting(f"cannot read the settings file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"the settings file {path} is no TOML: {error}") from None
    return {name: _typed(_known(name, str(path)), value, str(path)) for name, value in table.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for variable in sorted(environment):
        if variable.startswith(PREFIX) and variable not in NOT_SETTINGS:
            name = _known(variable.removeprefix(PREFIX).lower(), f"the environment variable {variable}")
            found[name] = _from_text(name, environment[variable], variable)
    return found


def _known(name: str, source: str) -> str:
    if name not in TYPES:
        raise BadSetting(f"{source} sets {name!r}, which is no setting; docs/settings.md lists them")
    return name


def _typed(name: str, value: object, source: str) -> Any:
    """The value as its setting's type; a list may be given as one value."""
    kind = TYPES[name]
    if typing.get_origin(kind) is tuple:
        element = typing.get_args(kind)[0]
        entries = value if isinstance(value, list | tuple) else (value,)
        return tuple(_checked(name, entry, element, source) for entry in entries)
    return _checked(name, value, kind, source)


def _checked(name: str, value: object, kind: type, source: str) -> Any:
    if type(value) is not kind:
        raise BadSetting(f"{source} sets {name} to {_shown(name, value)}; {_word(kind)} is needed")
    return value


def _from_text(name: str, text: str, variable: str) -> Any:
    kind = TYPES[name]
    source = f"the environment variable {variable}"
    if typing.get_origin(kind) is tuple:
        element = typing.get_args(kind)[0]
        return tuple(_parsed(name, part.strip(), element, source) for part in text.split(",") if part.strip())
    return _parsed(name, text.strip(), kind, source)


def _parsed(name: str, text: str, kind: type, source: str) -> Any:
    if kind is int and text.isascii() and text.isdigit():
        return int(text)
    if kind is bool and text.lower() in ("true", "1", "yes", "false", "0", "no"):
        return text.lower() in ("true", "1", "yes")
    if kind is str:
        return text
    raise BadSetting(f"{source} sets {name} to {_shown(name, text)}; {_word(kind)} is needed")


def _shown(name: str, value: object) -> str:
    secret = next(line.metadata["secret"] for line in dataclasses.fields(Settings) if line.name == name)
    return "something else" if secret else repr(value)


def _word(kind: type | types.GenericAlias) -> str:
    return {int: "a whole number", bool: "true or false", str: "a text"}.get(typing.cast(type, kind), str(kind))
