"""hubweir status: how the service is: stores, processes, entities, alarms. The exit code says whether it serves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from hubweir.cli.counted import counted
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, print_json
from hubweir.cli.render import table

UNHEALTHY = "unhealthy"
SERVES = "serves"


@click.command()
@click.option("--all", "every", is_flag=True, help="Show every partition and fragment, not only those in trouble.")
@as_json
@takes_target
def status(target: NamespaceAccess, every: bool, as_json: bool) -> None:
    """Show how the service is: its stores, the namespace's entities, and the alarms that stand.

    The exit code is 1 when something keeps clients' requests from being served. Needs Manage.
    """
    found = target.administration().status()
    if as_json:
        print_json(found)
    else:
        _show(found, every=every)
    sys.exit(1 if found["status"] == UNHEALTHY else 0)


def _show(found: dict[str, Any], *, every: bool) -> None:
    namespace = found["namespace"]
    click.echo(f"namespace {namespace['name']}: {found['status']}, hubweir {found['version']}")
    click.echo()
    rows = [(f"store {each['store']}", each["state"], str(each["open_logs"]), _notes(each)) for each in found["stores"]]
    rows += [(f"broker {each['broker']}", each["state"], "", f"pid {each['pid']}") for each in found["processes"]]
    table(("what", "state", "logs", "notes"), rows)
    logs = [
        (f"{entity['kind']} {entity['name']}", str(log["number"]), log["state"], _numbers(log), _notes(log))
        for entity in found["entities"]
        for log in entity["logs"]
        if every or _is_in_trouble(log)
    ]
    if logs:
        click.echo()
        table(("entity", "log", "state", "first to next", "notes"), logs)
    for line in _alarms(found):
        click.echo(line)


def _alarms(found: dict[str, Any]) -> Iterator[str]:
    if found["alarms"] or found["alarms_of_others"]:
        yield ""
    for alarm in found["alarms"]:
        yield f"alarm {alarm['kind']}, for {alarm['seconds']} s: {alarm['about']}: {alarm['text']}"
    if found["alarms_of_others"]:
        yield f"{found['alarms_of_others']} more alarms, of other namespaces"


def _is_in_trouble(log: dict[str, Any]) -> bool:
    return log["state"] != SERVES or bool(log["alarms"]) or bool(log.get("capture", {}).get("failure"))


def _numbers(log: dict[str, Any]) -> str:
    return f"{log['first']} to {log['next']}" if "first" in log else ""


def _notes(what: dict[str, Any]) -> str:
    capture = what.get("capture", {})
    notes = [*what["alarms"], what.get("why", "")]
    notes += [f"capture fails: {capture['failure']}"] if capture.get("failure") else []
    notes += [f"capture is {counted(capture['behind_events'], 'event')} behind"] if capture.get("behind_events") else []
    return "; ".join(filter(None, notes))
