"""The event hubs that a description names: how to reach them, and whether they are there. No PySpark here.

They are looked for before Spark is fetched or started, which takes its time. Only a namespace that answers can say that
a hub is not there; one that is away, or refuses to tell, is a matter of the run, which has patience.
"""

from __future__ import annotations

from contextlib import suppress

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.retry import RetryPolicy
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.pipelines.description import Description
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.ready_made import READY_MADE
from hubweir.spark.option_texts import OptionTexts
from hubweir.spark.source.read_options import parse_options

# The keys of a sink that name a hub. What the sink of a program of one's own means, its program knows.
_IN_SINKS = ("eventHub", "deadLetterHub")
_ASKED_ONCE = RetryPolicy(attempts=1, first_s=0.1, longest_s=0.1)
_ANSWER_S = 5.0


def hub_options(description: Description, hub: str = "eventHub") -> dict[str, str]:
    """The options of format("eventhubs") for the sink; hub: which of its values names the event hub."""
    own = str(description.sink["connectionString"])
    source = OptionTexts(description.source)
    options = {
        "connectionString": own or without_entity(source.text("connectionString") or ""),
        "eventHub": str(description.sink[hub]),
        "exactlyOnce": str(description.sink["exactlyOnce"]),
    }
    ca_file = source.text("caFile")
    return {**options, **({"caFile": ca_file} if ca_file and not own else {})}


def without_entity(connection_string: str) -> str:
    """The same namespace, without the hub that it may name: results go to another one."""
    pieces = connection_string.split(";")
    return ";".join(piece for piece in pieces if not piece.strip().lower().startswith("entitypath="))


def check_hubs(description: Description) -> None:
    """IllegalDescription for the first hub of source and sink that is not there, as its namespace says."""
    source = parse_options(description.source, is_stream=True)
    _check("source.eventHub", description, source.event_hub, source.connection_string, source.ca_file)
    if description.pipeline not in READY_MADE:
        return
    for key in _IN_SINKS:
        if description.sink.get(key):
            options = hub_options(description, key)
            text, ca_file = options["connectionString"], options.get("caFile")
            _check(f"sink.{key}", description, options["eventHub"], text, ca_file)


def _check(key: str, description: Description, hub: str, text: str, ca_file: str | None) -> None:
    if _is_missing(hub, text, ca_file):
        raise IllegalDescription(
            f"pipeline {description.name}: {key}: there is no event hub '{hub}' in "
            f"{ConnectionString.parse(text).endpoint}: make it with `hubweir eventhub create {hub}`, or name another"
        )


def _is_missing(hub: str, text: str, ca_file: str | None) -> bool:
    with suppress(OSError):
        try:
            with BlockingEventHubClient.from_connection_string(
                text, hub, ca_file=ca_file, retry=_ASKED_ONCE, timeout_s=_ANSWER_S
            ) as client:
                client.describe()
        except ServiceError as error:
            return error.condition is NOT_FOUND
    return False
