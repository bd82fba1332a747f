"""hubweir config validate | show | import | export | diff: Config.json files, and what they come to."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from hubweir.cli.counted import counted
from hubweir.cli.given_settings import config_files, takes_settings
from hubweir.cli.live_messaging import live_queues_and_topics, messaging_differences
from hubweir.cli.live_namespace import differences, live_document, messaging_namespace, with_queues_and_topics
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, print_json
from hubweir.config.arm_template import BadTemplate, config_of_template
from hubweir.config.effective_document import effective_document
from hubweir.config.emulator_entities import EmulatorConfig
from hubweir.config.emulator_file import parse_emulator_files, read_emulator_files
from hubweir.config.emulator_limits import file_limits
from hubweir.config.problems import EmulatorFileError, Problem, Problems
from hubweir.config.settings import Settings
from hubweir.config.sources import load_settings
from hubweir.namespace.tiers import PROFILES

takes_files = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
takes_profile = click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="development",
    show_default=True,
    help="official-emulator holds the files to that emulator's limits.",
)
takes_more_partitions = click.option(
    "--allow-more-partitions", "more", is_flag=True, help="As of serve: event hubs may have more than 32 partitions."
)
strictly = click.option("--strict-config", "strict", is_flag=True, help="A member that nothing reads is an error.")


@click.group(name="config")
def config_file() -> None:
    """Check, show, import, export and compare Config.json files."""


@config_file.command()
@takes_files
@takes_profile
@takes_more_partitions
@strictly
@as_json
def validate(files: tuple[Path, ...], profile: str, more: bool, strict: bool, as_json: bool) -> None:
    """Check files, or folders of them, as one configuration. Exit code 1, and every error with its place."""
    try:
        found = read_emulator_files(files, limits=file_limits(profile, allow_more_partitions=more), strict=strict)
        problems, left_out = found.warnings, 0
    except EmulatorFileError as error:
        found, problems, left_out = None, error.problems, error.left_out
    if as_json:
        documents = [_problem(problem) for problem in problems]
        print_json({"valid": found is not None, "problems": documents, "left_out": left_out})
    else:
        for problem in problems:
            click.echo(str(problem))
        if left_out:
            click.echo(f"and {left_out} more problems")
        if found is not None:
            click.echo(_summary(found))
    if found is None:
        sys.exit(1)


@config_file.command()
@takes_settings
def show(config: Path | None, **flags: object) -> None:
    """Show as JSON what `hubweir serve` with the same flags would come to: settings, entities, defaults filled in.

    Keys are not shown.
    """
    settings = load_settings(flags, os.environ, config)
    document: dict[str, object] = {"Settings": _settings(settings)}
    if settings.emulator_config or settings.emulator_config_text:
        document |= effective_document(config_files(settings), profile=PROFILES[settings.profile])
    print_json(document)


@config_file.command("import")
@click.argument("template", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--parameters", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file of parameters."
)
@click.option("--parameter", "given", multiple=True, metavar="NAME=VALUE", help="One parameter; JSON, else a text.")
@click.option("--resource-group", "group", default="default", show_default=True, help="What resourceGroup().name is.")
def import_template(template: Path, parameters: Path | None, given: tuple[str, ...], group: str) -> None:
    """Print the Config.json of a template of Azure Resource Manager, to which Bicep compiles, too.

    Namespaces of event hubs and of queues and topics are taken with all that they have; what else the template makes is
    left out, and told. Errors of the entities have their places in the Config.json.
    """
    values = {} if parameters is None else _parameters(read_json(parameters))
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--parameter {pair}: write NAME=VALUE")
        values[name] = _json_or_text(text)
    config = config_of_template(read_json(template), values, group=group, tell=_tell)
    found = parse_emulator_files([("Config.json", json.dumps(config, indent=2).encode())], Problems())
    for warning in found.warnings:
        _tell(str(warning))
    print_json(config)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file. Raises BadTemplate."""
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadTemplate(f"{path} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadTemplate(f"{path} is no JSON object")
    return found


def _parameters(document: dict[str, Any]) -> dict[str, Any]:
    """The values in a file of parameters: with or without the schema around them."""
    told = document.get("parameters", document)
    if not isinstance(told, dict):
        raise BadTemplate("the member parameters of the file of parameters is no object")
    return {name: each["value"] if isinstance(each, dict) and "value" in each else each for name, each in told.items()}


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


@config_file.command()
@click.option("--with-keys", is_flag=True, help="Write the keys of rules too; without them, new ones are drawn.")
@takes_target
def export(target: NamespaceAccess, with_keys: bool) -> None:
    """Print a Config.json that makes what the namespace has now."""
    document = target.run(lambda connection: live_document(connection, with_keys=with_keys, tell=_tell))
    found = live_queues_and_topics(target.administration(), with_keys=with_keys)
    print_json(with_queues_and_topics(document, found) if found else document)


@config_file.command()
@takes_files
@takes_profile
@takes_more_partitions
@takes_target
def diff(target: NamespaceAccess, files: tuple[Path, ...], profile: str, more: bool) -> None:
    """Compare files with the namespace as it is. Exit code 1 when they differ, one line for each difference.

    `+` is in the files only, `-` in the namespace only, `~` in both with other values; what the files do not say is
    no difference. Keys are not compared.
    """
    found = read_emulator_files(files, limits=file_limits(profile, allow_more_partitions=more))
    live = target.run(lambda connection: live_document(connection, with_keys=False, tell=_tell))
    lines = differences(found, live)
    namespace = messaging_namespace(found, live)
    if namespace is not None:
        lines += messaging_differences(namespace, live_queues_and_topics(target.administration(), with_keys=False))
    for line in lines:
        click.echo(line)
    if lines:
        sys.exit(1)
    click.echo("no differences")


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _problem(problem: Problem) -> dict[str, object]:
    return {
        "severity": problem.severity.value,
        "kind": problem.kind.value,
        "file": problem.location.file,
        "line": problem.location.line,
        "column": problem.location.column,
        "path": problem.location.path,
        "what": problem.what,
        "found": problem.found,
        "allowed": problem.allowed,
    }


def _summary(found: EmulatorConfig) -> str:
    counts = [f"valid: {counted(len(found.namespaces), 'namespace')}"]
    for what, member in (("event hub", "hubs"), ("queue", "queues"), ("topic", "topics")):
        number = sum(len(getattr(namespace, member)) for namespace in found.namespaces)
        if number or what == "event hub":
            counts.append(counted(number, what))
    return ", ".join(counts)


def _settings(settings: Settings) -> dict[str, object]:
    """Every setting but the secret ones."""
    return {
        line.name: getattr(settings, line.name) for line in dataclasses.fields(settings) if not line.metadata["secret"]
    }
