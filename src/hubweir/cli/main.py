"""The command tree of `hubweir`. A command's module is imported when the command is called, so `--help` stays quick."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import select
import sys

import click

from hubweir import __version__
from hubweir.errors import HubweirError, ServiceError

# What a shell shows of a program that SIGPIPE ended: whoever piped the output took all that they wanted.
OUTPUT_CLOSED = 128 + 13

# Command: module, attribute, the line that the menu shows.
COMMANDS = {
    "serve": ("hubweir.cli.serve", "serve", "Run the service."),
    "send": ("hubweir.cli.send", "send", "Publish events to an event hub."),
    "receive": ("hubweir.cli.receive", "receive", "Read events of an event hub."),
    "tail": ("hubweir.cli.receive", "tail", "Read events of an event hub as they come."),
    "readers": ("hubweir.cli.readers", "readers", "Show who reads event hubs, and how far behind."),
    "message": ("hubweir.cli.message", "message", "Send, receive, peek, dead-letter, resubmit and purge messages."),
    "eventhub": ("hubweir.cli.event_hub", "event_hub", "Create, list, show, change and delete event hubs."),
    "queue": ("hubweir.cli.queue", "queue", "Create, list, show, change and delete queues."),
    "topic": ("hubweir.cli.topic", "topic", "Create, list, show, change and delete topics."),
    "subscription": (
        "hubweir.cli.subscription",
        "subscription",
        "Create, list, show, change and delete subscriptions of topics.",
    ),
    "rule": ("hubweir.cli.rule", "rule", "Create, list, show, change and delete rules of subscriptions."),
    "authorization-rule": (
        "hubweir.cli.authorization_rule",
        "authorization_rule",
        "Make, list and delete authorization rules; show and renew their keys.",
    ),
    "namespace": (
        "hubweir.cli.namespace",
        "namespace",
        "Make, list, show and delete namespaces; change throughput units.",
    ),
    "broker": ("hubweir.cli.broker", "broker", "List broker processes; stop, kill and stall them for tests."),
    "test-control": (
        "hubweir.cli.testcontrol",
        "test_control",
        "Set the clock forward and order faults, for tests.",
    ),
    "status": ("hubweir.cli.status", "status", "Show how the service is: stores, entities, alarms."),
    "health": ("hubweir.cli.health", "health", "Exit with 0 when the service is ready, for containers."),
    "config": ("hubweir.cli.config_file", "config_file", "Check, show, import, export and compare Config.json files."),
    "store": ("hubweir.cli.store", "store", "Look into a data folder: logs, batches, checksums."),
    "pipeline": ("hubweir.cli.pipeline", "pipeline", "Run ready-made streams of Spark over event hubs."),
    "sas": ("hubweir.cli.sas", "sas", "Make and explain shared access signatures."),
}


class LazyCommands(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[name]
        # What an import makes stays, and a collector that looks through it takes a tenth of the time.
        has_collections = gc.isenabled()
        gc.disable()
        try:
            command = getattr(importlib.import_module(module), attribute)
        finally:
            if has_collections:
                gc.enable()
        assert isinstance(command, click.Command)
        return command

    def invoke(self, context: click.Context) -> object:
        """Run the command. A pipe that its reader closed, as `head` does, ends it without a word."""
        try:
            return super().invoke(context)
        except BrokenPipeError:
            if not _silence_closed_streams():
                raise
            context.exit(OUTPUT_CLOSED)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


def _silence_closed_streams() -> bool:
    """Let the standard streams that nobody reads any more go nowhere, also at exit; False: there was none."""
    found = False
    for stream in (sys.stdout, sys.stderr):
        look = select.poll()
        look.register(stream.fileno(), select.POLLOUT)
        if any(state & (select.POLLERR | select.POLLHUP) for _, state in look.poll(0)):
            found = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return found


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="hubweir")
def hubweir() -> None:
    """hubweir: event hubs, queues and topics that run anywhere.

    Commands that talk to a namespace take --connection-string, or HUBWEIR_CONNECTION_STRING; without either they use
    the development namespace that `hubweir serve` starts on this machine.
    """


def _hint(error: ServiceError) -> str:
    """What to look at where nobody listens: on this machine it is most often a service that was not started."""
    cause = error.__cause__
    while isinstance(cause, HubweirError):
        cause = cause.__cause__
    return "; is `hubweir serve` running there?" if isinstance(cause, ConnectionRefusedError) else ""


def main() -> None:
    """The entry point: refusals end as one line on stderr and exit code 1, not as a traceback."""
    # The system frees all objects with the process; a collection that looks at each of them before takes 0.2 s. So
    # nothing that is to be written may wait for one.
    atexit.register(gc.freeze)
    try:
        hubweir(prog_name="hubweir")  # also as python -m hubweir, which is what ./run hubweir is
    except ServiceError as error:
        click.echo(f"hubweir: {error.text} ({error.condition.symbol}){_hint(error)}", err=True)
        sys.exit(1)
    except HubweirError as error:
        click.echo(f"hubweir: {error}", err=True)
        sys.exit(1)
