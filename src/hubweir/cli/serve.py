"""hubweir serve: the service in the foreground, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path

import click

from hubweir import kernels
from hubweir.config.emulator_entities import Root
from hubweir.config.emulator_file import read_emulator_files
from hubweir.config.emulator_limits import file_limits
from hubweir.config.emulator_variables import companions_in
from hubweir.config.namespace_settings import NamespaceSettings, namespaces_of
from hubweir.config.settings import DEVELOPMENT_KEY, Settings
from hubweir.config.sources import TYPES, load
from hubweir.launcher import Service

# Whoever starts the service waits for this line on standard output.
READY_LINE = "hubweir is ready"
# And whoever starts the official emulators waits for this one.
EMULATOR_READY_LINE = "Emulator Service is Successfully Up!"


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one flag for every setting, in the order of the settings' table."""
    for line in reversed(fields(Settings)):
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
    return command


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


@click.command()
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read settings from this TOML file; flags and HUBWEIR_ variables win over it.",
)
@takes_settings
def serve(config: Path | None, **flags: object) -> None:
    """Run the service until SIGTERM or Ctrl-C.

    Without flags it listens on 127.0.0.1, keeps its data in ./hubweir-data and has the namespace hubweir with the
    development key. It prints connection strings to paste and, when clients may come, the line "hubweir is ready".
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    settings, namespaces = configured(flags, os.environ, config)
    with asyncio.Runner(loop_factory=_loop_factory(settings.loop)) as runner:
        runner.run(_serve(settings, namespaces))


def configured(
    flags: Mapping[str, object], environment: Mapping[str, str], file: Path | None
) -> tuple[Settings, tuple[NamespaceSettings, ...]]:
    """The settings, and the namespaces with what a Config.json wants to be there. What the file says of its first
    namespace wins over defaults and over nothing else.

    Prints its warnings; EmulatorFileError has every error of it.
    """
    settings = load(flags, environment, file)
    companions = companions_in(environment)
    if companions and (settings.profile == "official-emulator" or settings.emulator_config):
        click.echo(
            f"variables of the official emulators that hubweir has no use for: {', '.join(companions)}", err=True
        )
    if not settings.emulator_config:
        return settings, namespaces_of(settings)
    limits = file_limits(settings.profile, allow_more_partitions=settings.allow_more_partitions)
    limits = replace(limits, throughput_units_max=settings.max_throughput_units)
    paths = [Path(path) for path in settings.emulator_config]
    found = read_emulator_files(paths, limits=limits, strict=settings.strict_config)
    for warning in found.warnings:
        click.echo(str(warning), err=True)
    namespaces = tuple(each for each in found.namespaces if each.root is Root.EVENT_HUBS)
    wanted = namespaces[0]
    below: dict[str, object] = {"namespace": wanted.name}
    if wanted.sku is not None:
        below["profile"] = wanted.sku.value.lower()
    if wanted.throughput_units is not None:
        below["throughput_units"] = wanted.throughput_units
    if wanted.maximum_throughput_units and wanted.is_auto_inflate_enabled is not False:
        below["maximum_throughput_units"] = wanted.maximum_throughput_units
    if wanted.hostnames:
        below["hostname"] = wanted.hostnames
    final = load(flags, environment, file, below=below)
    return final, namespaces_of(final, namespaces, profile=settings.profile)


async def _serve(settings: Settings, namespaces: tuple[NamespaceSettings, ...]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    service = await Service.start(settings, namespaces)
    for line in greeting(service):
        click.echo(line)
    click.echo(READY_LINE)
    if settings.profile == "official-emulator" or settings.emulator_config:
        click.echo(EMULATOR_READY_LINE)
    sys.stdout.flush()
    await stop.wait()
    click.echo("stopping: what was received is being settled", err=True)
    await service.stop()
    click.echo("stopped", err=True)


def greeting(service: Service) -> list[str]:
    """What a person needs to begin: where it listens, connection strings, whom to trust."""
    settings = service.settings
    lines = [
        f"namespace {settings.namespace}, data in {Path(settings.data).absolute()}",
        "listening on " + ", ".join(f"{host}:{port}" for host, port in service.addresses),
    ]
    if kernels.which() == "pure":
        lines.append("no compiled kernels: plain Python does the same work, slower")
    lines += [f"alarm: {alarm}" for alarm in service.alarms]
    lines += ["plain AMQP, for this machine:", f"  {service.connection_string(plain=True)}"]
    lines += ["TLS:", f"  {service.connection_string(plain=False)}"]
    if service.certificate is not None and service.certificate.ca is not None:
        lines.append(f"  development certificate; let clients trust {service.certificate.ca.absolute()}")
    for further in service.namespaces[1:]:
        lines += [f"namespace {further.name}:"]
        lines += [f"  {service.connection_string(further.name, plain=plain)}" for plain in (True, False)]
    if settings.key == DEVELOPMENT_KEY:
        lines.append(f"the key is the development key {DEVELOPMENT_KEY}, which everybody knows")
    return lines


def _loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is wanted and installed; None is asyncio's own."""
    if name == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        if name == "uvloop":
            raise click.ClickException("uvloop is not installed; --loop asyncio works everywhere") from None
        return None
    return uvloop.new_event_loop
