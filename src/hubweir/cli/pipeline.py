"""hubweir pipeline list | show | run | status: streams of Spark over event hubs. Only `run` loads PySpark."""

from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import click

from hubweir.cli.namespace_access import DEVELOPMENT
from hubweir.cli.options import as_json
from hubweir.cli.render import table
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.retry import RetryPolicy
from hubweir.errors import ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.pipelines.description import CHECKPOINTS, Description, describe, read_file, with_settings
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.fields import Field
from hubweir.pipelines.named_hubs import check_hubs
from hubweir.pipelines.ready_made import READY_MADE
from hubweir.pipelines.run_status import RUNNING, PartitionStatus, RunStatus, known_checkpoints, read_status

INSTALL = (
    "a pipeline runs on PySpark, which is not installed: pip install 'hubweir[spark]'; "
    "in a checkout: ./run python --with spark -m hubweir pipeline …"
)
connection_string = click.option(
    "--connection-string",
    envvar="HUBWEIR_CONNECTION_STRING",
    default=DEVELOPMENT,
    show_default="the development namespace on this machine",
    help="Where the namespace is and what key to use, when the description does not say it.",
)

ca_file = click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False),
    envvar="HUBWEIR_CA_FILE",
    help="Trust this CA for TLS to that namespace.",
)


@click.group()
def pipeline() -> None:
    """Run ready-made streams of Spark over event hubs."""


@pipeline.command("list")
def list_() -> None:
    """List the pipelines that come with hubweir."""
    table(("pipeline", "what it does"), [(entry.name, entry.summary) for entry in READY_MADE.values()])


@pipeline.command()
@click.argument("name", type=click.Choice(list(READY_MADE)), metavar="NAME")
def show(name: str) -> None:
    """Show what a pipeline takes, as a description to fill in."""
    entry = READY_MADE[name]
    click.echo(f"# {entry.name}: {entry.summary}\n# program: {entry.program}\n")
    click.echo(f'pipeline = "{entry.name}"\nname = "{entry.name}"\ncheckpoint = "{CHECKPOINTS}/{entry.name}"')
    click.echo(f'trigger = "{entry.trigger_s:g}s"  # or "once"\n')
    click.echo('[source]  # options of format("eventhubs"): docs/spark.md\neventHub = "…"')
    for title, fields in (("parameters", entry.parameters), ("sink", entry.sink)):
        if fields:
            click.echo(f"\n[{title}]")
            for each in fields:
                click.echo(_line(each))


def _line(field: Field) -> str:
    comment = f"{field.meaning}; {field.allowed}"
    if field.default is None:
        return f"{field.name} = …  # must be given: {comment}"
    value = json.dumps(f"{field.default:g}s" if isinstance(field.default, float) else field.default)
    return f"{field.name} = {value}  # {comment}"


@pipeline.command()
@click.argument("name")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Such as source.eventHub=orders.")
@click.option("--master", default="local[*]", show_default=True, help="Spark's master, such as spark://host:7077.")
@click.option("--once", is_flag=True, help="Read what there is now, then end.")
@click.option(
    "--check", is_flag=True, help="Only see whether the description is right and its hubs are there; needs no PySpark."
)
@connection_string
@ca_file
def run(
    name: str,
    settings: tuple[str, ...],
    master: str,
    once: bool,
    check: bool,
    connection_string: str,
    ca_file: str | None,
) -> None:
    """Run a pipeline by its NAME, or by a FILE.toml that describes it, until Ctrl-C or SIGTERM."""
    description = _description(name, settings, connection_string, ca_file)
    if check:
        check_hubs(description)
        click.echo(f"{description.name}: the description is right")
        return
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pyarrow") is None:
        raise click.ClickException(INSTALL)
    from hubweir.pipelines.runner import run as run_pipeline

    events = run_pipeline(description, master=master, once=once, tell=lambda line: click.echo(line, err=True))
    click.echo(f"{description.name}: {events:,} events")


def _check_name(name: str) -> None:
    if name not in READY_MADE and ":" not in name and not name.endswith(".toml"):
        raise IllegalDescription(
            f"there is no pipeline {name!r}: use {', '.join(READY_MADE)}, FILE.toml or module:function"
        )


def _description(name: str, settings: tuple[str, ...], text: str, ca_file: str | None) -> Description:
    _check_name(name)
    if name.endswith(".toml"):
        raw, where = with_settings(read_file(Path(name)), settings), name
    else:
        raw, where = with_settings({"pipeline": name}, settings), "--set"
    return describe(raw, where, connection_string=text, ca_file=ca_file)


@pipeline.command()
@click.argument("name", required=False)
@click.option("--checkpoint", type=click.Path(path_type=Path), help="Of one pipeline, wherever it is.")
@as_json
@connection_string
@ca_file
def status(
    name: str | None, checkpoint: Path | None, as_json: bool, connection_string: str, ca_file: str | None
) -> None:
    """Show what pipelines did last, and how far each partition is behind its hub.

    NAME is a pipeline's, or the FILE.toml that describes it; without it all in the folder checkpoints.
    """
    if name is not None and checkpoint is not None:
        raise click.UsageError("give NAME or --checkpoint, not both")
    if name is not None:
        checkpoint = _checkpoint(name, connection_string)
    folders = [checkpoint] if checkpoint is not None else list(known_checkpoints(Path(CHECKPOINTS)))
    found = [_now(read_status(folder), connection_string, ca_file) for folder in folders]
    if as_json:
        click.echo(json.dumps([{**asdict(each), "as_of": as_of} for each, as_of in found], indent=2))
        return
    if not found:
        click.echo(f"no pipeline has run here: there is none in {CHECKPOINTS}; --checkpoint DIR names another place")
    for folder, (each, as_of) in zip(folders, found, strict=True):
        place = "" if checkpoint or folder.name == each.name else f" in {folder}"  # two may have one name
        last = f"batch {each.batch}, {each.events_per_s:,.0f} events/s" if each.batch >= 0 else "no batch in this run"
        click.echo(f"{each.name} ({each.pipeline}){place}: {_state(each)}, {last}, behind {each.behind:,} {as_of}")
        if each.failure:
            click.echo(f"  {each.failure}", err=True)
        rows = [(key, str(one.next), str(one.behind)) for key, one in each.partitions.items()]
        table(("partition", "next", "behind"), rows)


def _checkpoint(name: str, text: str) -> Path:
    """The checkpoint of a pipeline by its name, or by its file. IllegalDescription when none of that name has run."""
    if name.endswith(".toml"):
        return Path(_description(name, (), text, None).checkpoint.removeprefix("file://"))
    known = {folder.name: folder for folder in known_checkpoints(Path(CHECKPOINTS))}
    if name not in known:
        there = ", ".join(known) or "none"
        raise IllegalDescription(
            f"no pipeline {name} has run here; in {CHECKPOINTS}: {there}; --checkpoint DIR names another place"
        )
    return known[name]


def _state(status: RunStatus) -> str:
    """Running, stopped or failed; of one that says it runs and does not, on this machine, that it was killed."""
    if status.state == RUNNING:
        try:
            os.kill(status.pid, 0)
        except ProcessLookupError:
            return "killed"
        except OSError:
            return RUNNING  # somebody else's process
    return status.state


def _now(status: RunStatus, connection_string: str, ca_file: str | None) -> tuple[RunStatus, str]:
    """The status with what the hub holds now, when its namespace answers; else as the last batch saw it."""
    # Another namespace may have a hub of that name, with other numbers.
    if ConnectionString.parse(connection_string).endpoint != status.endpoint:
        return status, "when it last looked"
    retry = RetryPolicy(attempts=1, first_s=0.1, longest_s=0.1)
    try:
        with BlockingEventHubClient.from_connection_string(
            connection_string, status.event_hub, ca_file=ca_file, retry=retry, timeout_s=5.0
        ) as client:
            ids = client.describe().partition_ids
            highs = {one.partition_id: one.last_sequence_number + 1 for one in client.partitions(ids)}
    except (ServiceError, OSError):
        return status, "when it last looked"
    partitions = {
        key: PartitionStatus(at, max(0, highs[key] - at))
        for key in ids
        for at in [status.partitions[key].next if key in status.partitions else 0]
    }
    return replace(status, partitions=partitions), "now"
