"""hubweir serve: the service in the foreground, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click

from hubweir import kernels
from hubweir.cli.given_settings import configured, takes_settings
from hubweir.config.namespace_settings import NamespaceSettings
from hubweir.config.settings import DEVELOPMENT_KEY, Settings
from hubweir.launcher import Service

# Whoever starts the service waits for this line on standard output.
READY_LINE = "hubweir is ready"
# And whoever starts the official emulators waits for this one.
EMULATOR_READY_LINE = "Emulator Service is Successfully Up!"


@click.command()
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
