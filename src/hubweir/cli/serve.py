"""hubweir serve: the service in the foreground, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from hubweir import kernels
from hubweir.cli.given_settings import CommandInSections, configured, takes_settings
from hubweir.config.namespace_settings import SaidNamespaces
from hubweir.config.settings import DEVELOPMENT_KEY, Settings
from hubweir.namespace.connection_string import ConnectionString
from hubweir.service.bounded_stop import StopLimit
from hubweir.service.event_loop import loop_factory
from hubweir.service.log_output import LogOutput, begin_log
from hubweir.service.parts import Parts
from hubweir.service.running_settings import RunningSettings
from hubweir.service.service import Service
from hubweir.service.service_life import ServiceLife
from hubweir.service.stop_signal import StopSignal

logger = logging.getLogger(__name__)

# Whoever starts the service waits for this line on standard output.
READY_LINE = "hubweir is ready"
# And whoever starts the official emulators waits for this one.
EMULATOR_READY_LINE = "Emulator Service is Successfully Up!"


@click.command(cls=CommandInSections)
@takes_settings
def serve(config: Path | None, **flags: object) -> None:
    """Run the service until SIGTERM or Ctrl-C.

    Without flags it listens on 127.0.0.1, keeps its data in ./hubweir-data and has the namespace hubweir with the
    development key. It prints connection strings to paste and, when clients may come, the line "hubweir is ready".
    """
    given = partial(configured, flags, os.environ, config)
    settings, said = given()
    output = begin_log(settings.log_level, settings.log_format)
    with StopLimit() as limit, asyncio.Runner(loop_factory=loop_factory(settings.loop)) as runner:
        code = runner.run(_serve(settings, said, output, given, limit))
    if code:
        sys.exit(code)


async def _serve(
    settings: Settings,
    said: SaidNamespaces,
    output: LogOutput,
    given: Callable[[], tuple[Settings, SaidNamespaces]],
    limit: StopLimit,
) -> int:
    """The exit code. given: reads the settings anew, from where they came."""
    loop = asyncio.get_running_loop()
    output.follow(loop)
    life = ServiceLife(settings)
    stop = StopSignal((signal.SIGTERM, signal.SIGINT), limit, life.stopping)
    # A terminal that goes away sends it too, and must not take the service with it: ignored until there is a service.
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    service = await stop.started(_started(settings, said, limit))
    if service is None:
        return _stopped(life, limit)
    again = RunningSettings(service, given)
    loop.add_signal_handler(signal.SIGHUP, again.read)
    life.ready(service.addresses)
    for line in greeting(service):
        _say(line)
    _say(READY_LINE)
    if settings.profile == "official-emulator" or settings.emulator_config or settings.emulator_config_text:
        _say(EMULATOR_READY_LINE)
    await stop.wait()
    limit.begin(service)
    await again.stop()
    await service.stop()
    return _stopped(life, limit)


def _stopped(life: ServiceLife, limit: StopLimit) -> int:
    """Say so, where no disk was left. The exit code."""
    if limit.exit_code == 0:
        life.stopped()
    return limit.exit_code


async def _started(settings: Settings, said: SaidNamespaces, limit: StopLimit) -> Parts:
    """The service in this process, or what starts its processes and watches them."""
    if settings.brokers == 1:
        return await Service.start(settings, said, limit=limit)
    from hubweir.service.supervisor import Supervisor

    return await Supervisor.start(settings, said, limit=limit)


def _say(line: str, *, err: bool = False) -> None:
    """Print a line. A service whose terminal, or the reader of its output, is gone serves on."""
    try:
        click.echo(line, err=err)
    except OSError as error:
        logger.info("could not print %r: %s", line, error)


def greeting(service: Parts) -> list[str]:
    """What a person needs to begin: where it listens, connection strings, whom to trust."""
    default = service.namespaces[0]
    lines = [
        f"namespace {default.name}, profile {default.profile}, data in {Path(service.settings.data).absolute()}",
        "listening on " + ", ".join(f"{host}:{port}" for host, port in service.addresses),
    ]
    if kernels.which() == "pure":
        lines.append("no compiled kernels: plain Python does the same work, slower")
    lines += [f"note: {note}" for note in service.notes]
    lines += [f"alarm: {alarm}" for alarm in service.alarms.current()]
    lines += ["plain AMQP, for this machine:", f"  {service.connection_string(plain=True)}"]
    lines += ["TLS:", f"  {service.connection_string(plain=False)}", *_beside_it(service)]
    for further in service.namespaces[1:]:
        lines += [f"namespace {further.name}, profile {further.profile}:"]
        lines += [f"  {service.connection_string(further.name, plain=plain)}" for plain in (True, False)]
    if any(each.key == DEVELOPMENT_KEY for each in service.namespaces):
        lines.append(f"the key is the development key {DEVELOPMENT_KEY}, which everybody knows")
    return lines


def _beside_it(service: Parts) -> list[str]:
    """What a client has to be told beside the connection string for TLS: for all, and in the words of Python's."""
    lines, arguments = [], []
    ca = service.certificate.ca
    if ca is not None:
        lines.append(f"  development certificate; let clients trust {ca.absolute()}")
        arguments.append(f'connection_verify="{ca.absolute()}"')
    over_tls, plain = (ConnectionString.parse(service.connection_string(plain=each)) for each in (False, True))
    if over_tls.port is not None:
        lines.append("  official clients know port 5671 only, whatever the string says: give them a custom endpoint")
        arguments.append(f'custom_endpoint_address="sb://{plain.host}:{over_tls.port}"')
    if arguments:
        lines.append(f"  azure-eventhub takes {', '.join(arguments)}")
    return lines
