"""The settings of one call of serve: flags, variables, a settings file, and the Config.json files that they name."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import click

from hubweir.config.emulator_entities import EmulatorConfig
from hubweir.config.emulator_file import read_emulator_files
from hubweir.config.emulator_limits import file_limits
from hubweir.config.emulator_variables import companions_in
from hubweir.config.namespace_settings import SaidNamespaces, said_namespaces
from hubweir.config.settings import LINES, Settings
from hubweir.config.sources import TYPES, load_given

# Sections of `hubweir serve --help`, the daily one first. What no section names stands in the last.
SECTIONS = {
    "Every day": (
        "config", "data", "host", "port", "key", "namespace", "profile", "emulator_config", "throughput_units",
        "portal", "metrics", "traces", "log_level", "log_format",
    ),
    "Names and further namespaces": ("hostname", "further_namespace"),
    "Rights and TLS": (
        "allow_development_key", "tls_cert", "tls_key", "tls_client_ca", "plain_without_tls", "jwt_issuer",
        "jwt_audience", "jwt_keys_file", "jwt_keys_check_ms",
    ),
    "Processes and stores": ("brokers", "stores", "broker_seam", "loop", "offload_threads", "stop_grace_ms"),
    "Throughput units": ("maximum_throughput_units", "max_throughput_units", "partition_cap"),
    "Capture": ("capture_folder", "capture_storage", "capture_backlog_bytes", "capture_backlog_ms"),
    "Tests and emulators": ("emulator_config_text", "allow_more_partitions", "strict_config", "lone_receives"),
}  # fmt: skip
LAST_SECTION = "Limits and tuning"


class CommandInSections(click.Command):
    """A command whose --help has the options in SECTIONS."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        shown = [(title, [rows.pop(name) for name in names if name in rows]) for title, names in SECTIONS.items()]
        for title, section in (*shown, (LAST_SECTION, list(rows.values()))):
            if any(section):
                with formatter.section(title):
                    formatter.write_dl([row for row in section if row is not None])


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command --config, and one flag for every setting, in the order of the settings' table.

    It gets `config`, the path or None, and a keyword a setting, None for those that are not given.
    """
    for line in reversed(LINES):
        flag, kind = f"--{line.name.replace('_', '-')}", TYPES[line.name]
        meaning = f"{line.metadata['meaning']}  [default: {_shown(line.name, line.default)}]"
        if kind is bool:
            option = click.option(f"{flag}/--no{flag[1:]}", line.name, default=None, help=meaning)
        elif isinstance(kind, types.GenericAlias):
            option = click.option(
                flag,
                line.name,
                type=_Value(kind),
                multiple=True,
                callback=_joined,
                help=meaning,
                metavar=_metavar(kind),
            )
        else:
            option = click.option(
                flag, line.name, type=_Value(kind), default=None, help=meaning, metavar=_metavar(kind)
            )
        command = option(command)
    return _settings_file(command)


_settings_file = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read settings from this TOML file; flags and HUBWEIR_ variables win over it.",
)


def _joined(
    context: click.Context, parameter: click.Parameter, given: tuple[tuple[object, ...], ...]
) -> tuple[object, ...] | None:
    """A list that is given by one flag, or by several; None when it is not given."""
    return tuple(value for part in given for value in part) if given else None


def _metavar(kind: object) -> str:
    if isinstance(kind, types.GenericAlias):
        one = _metavar(typing.get_args(kind)[0])
        return f"{one}[,{one}…]"
    return "N" if kind is int else "TEXT"


def _shown(name: str, default: object) -> str:
    if isinstance(default, tuple):
        return ",".join(map(str, default)) or "none"
    return str(default) if default != "" else "none"


class _Value(click.ParamType[object]):
    """A setting on the command line: a text, an integer, or several of either with commas between them."""

    name = "value"

    def __init__(self, kind: object) -> None:
        self._kind = kind

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        text = str(value)
        if isinstance(self._kind, types.GenericAlias):
            inner = typing.get_args(self._kind)[0]
            return tuple(self._one(inner, piece.strip(), param, ctx) for piece in text.split(",") if piece.strip())
        return self._one(self._kind, text, param, ctx)

    def _one(self, kind: object, text: str, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if kind is not int:
            return text
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            self.fail(f"{text!r} is not a whole number", param, ctx)
        return int(text)


def configured(
    flags: Mapping[str, object], environment: Mapping[str, str], file: Path | None
) -> tuple[Settings, SaidNamespaces]:
    """The settings, and what they and the Config.json files that they name say of namespaces.

    Prints the warnings of the files; EmulatorFileError has every error of them.
    """
    given = load_given(flags, environment, file)
    settings = given.settings
    companions = companions_in(environment)
    has_files = bool(settings.emulator_config or settings.emulator_config_text)
    if companions and (settings.profile == "official-emulator" or has_files):
        click.echo(
            f"variables of the official emulators that hubweir has no use for: {', '.join(companions)}", err=True
        )
    found = config_files(settings).namespaces if has_files else ()
    return settings, said_namespaces(settings, found, sources=given.sources)


def config_files(settings: Settings) -> EmulatorConfig:
    """The Config.json files that the settings name, held to the settings' limits; their warnings go to standard error.

    Raises EmulatorFileError with every error of theirs.
    """
    limits = file_limits(settings.profile, allow_more_partitions=settings.allow_more_partitions)
    limits = replace(limits, throughput_units_limit=settings.max_throughput_units)
    paths = [Path(path) for path in settings.emulator_config]
    found = read_emulator_files(paths, text=settings.emulator_config_text, limits=limits, strict=settings.strict_config)
    for warning in found.warnings:
        click.echo(str(warning), err=True)
    return found
