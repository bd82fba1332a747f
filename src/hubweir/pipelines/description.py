"""A pipeline as data: which program, its source, parameters, sink, checkpoint and trigger. From TOML or from Python.

    pipeline = "to-lake"             # a name of `hubweir pipeline list`, or module:function of your own
    name = "orders-to-lake"          # of the query; without it the pipeline's name
    checkpoint = "checkpoints/orders"
    trigger = "30s"                  # how often, or "once": what there is now, then end

    [source]                         # options of format("eventhubs"), docs/spark.md
    eventHub = "orders"

    [parameters]                     # of this pipeline: `hubweir pipeline show to-lake`
    [sink]

The three tables are read by the fields of ready_made.py; a program of your own takes whatever it is given.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.fields import Field, Value
from hubweir.pipelines.ready_made import READY_MADE, PipelineEntry
from hubweir.spark.errors import IllegalOption
from hubweir.spark.source.read_options import parse_options

ONCE = "once"
CHECKPOINTS = "checkpoints"
_TOP = ("pipeline", "name", "checkpoint", "trigger")
_TABLES = ("source", "parameters", "sink")
# A file's name has 255 bytes, and the names of what is beside a checkpoint begin with its own.
_NAME_LIMIT = 200
_TRIGGER = Field("trigger", "seconds", None, "")
# So that a batch that is repeated after a crash is bounded, and the first over a full hub does not take all of it.
_EVENTS_LIMIT = "2000000"


@dataclass(frozen=True, slots=True)
class Description:
    """A pipeline to run. source: options for Spark, secrets among them, as in the other tables: repr has none of them.

    trigger_s: seconds between micro-batches; None: what is there now, then end.
    """

    pipeline: str
    name: str
    checkpoint: str
    program: str
    trigger_s: float | None
    source: Mapping[str, str] = field(repr=False)
    parameters: Mapping[str, Value] = field(repr=False)
    sink: Mapping[str, Value] = field(repr=False)


def read_file(path: Path) -> dict[str, Any]:
    """What a TOML file says, not checked yet. IllegalDescription when it cannot be read, or is no TOML."""
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise IllegalDescription(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise IllegalDescription(f"{path} is no TOML: {error}") from None


def with_settings(raw: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The same with `key=value` texts on top: keys as in the file, with a dot, such as sink.path.

    A later text wins over an earlier one, and over the file. IllegalDescription: no such key or table, no `=`.
    """
    changed = {key: dict(value) if isinstance(value, dict) else value for key, value in raw.items()}
    for text in settings:
        key, equals, value = text.partition("=")
        table, dot, name = key.strip().partition(".")
        if not equals or (table not in _TABLES if dot else table not in _TOP):
            raise IllegalDescription(
                f"--set {text.partition('=')[0]}: write KEY=VALUE, where KEY is {', '.join(_TOP)}, or a table and a "
                f"name: {', '.join(f'{one}.…' for one in _TABLES)}"
            )
        if not dot:
            changed[table] = value
            continue
        if not isinstance(changed.setdefault(table, {}), dict):
            raise IllegalDescription(f"{table} is a table: [{table}]")
        changed[table][name] = value
    return changed


def describe(
    raw: Mapping[str, Any], where: str, *, connection_string: str | None = None, ca_file: str | None = None
) -> Description:
    """The description that raw is. where: the file, for errors. connection_string: where the source names none.

    ca_file: the authority to trust for it, where the source names none either.

    IllegalDescription for the first key that is unknown, missing or wrong.
    """
    _known(where, raw, (*_TOP, *_TABLES))
    name = _top(raw, "pipeline", where)
    if name is None:
        raise IllegalDescription(f"{where}: pipeline is missing; allowed: {', '.join(READY_MADE)}, or module:function")
    entry = READY_MADE.get(name)
    if entry is None and not all(name.partition(":")):
        raise IllegalDescription(f"{where}: pipeline is {name!r}; allowed: {', '.join(READY_MADE)}, or module:function")
    tables = {table: raw.get(table, {}) for table in _TABLES}
    for table, value in tables.items():
        if not isinstance(value, dict):
            raise IllegalDescription(f"{where}: {table} is a table: [{table}]")
    called = _top(raw, "name", where) or name.replace(":", ".")
    checkpoint = _top(raw, "checkpoint", where)
    if checkpoint is None and ("/" in called or not called.isprintable() or len(called.encode()) > _NAME_LIMIT):
        raise IllegalDescription(
            f"{where}: name is {called[:64]!r}; allowed: at most {_NAME_LIMIT} bytes without a slash, or give "
            "checkpoint, a folder that would be called so"
        )
    return Description(
        pipeline=name,
        name=called,
        checkpoint=checkpoint or f"{CHECKPOINTS}/{called}",
        program=name if entry is None else entry.program,
        trigger_s=_trigger(_top(raw, "trigger", where), entry, where),
        source=_source(tables["source"], where, connection_string, ca_file),
        parameters=_fields(tables["parameters"], None if entry is None else entry.parameters, f"{where}: parameters"),
        sink=_fields(tables["sink"], None if entry is None else entry.sink, f"{where}: sink"),
    )


def _known(where: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise IllegalDescription(f"{where}: {unknown[0]} is not known; allowed: {', '.join(known) or 'nothing'}")


def _top(raw: Mapping[str, Any], key: str, where: str) -> str | None:
    value = raw.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise IllegalDescription(f"{where}: {key} is {str(value)[:64]!r}; allowed: text that is not empty")
    return value


def _trigger(text: str | None, entry: PipelineEntry | None, where: str) -> float | None:
    if text is None:
        return 1.0 if entry is None else entry.trigger_s
    if text == ONCE:
        return None
    found = _TRIGGER.read(text, f"{where}: trigger is neither {ONCE!r} nor a duration: it")
    assert isinstance(found, float)
    return found


def _source(given: Mapping[str, Any], where: str, connection_string: str | None, ca_file: str | None) -> dict[str, str]:
    if wrong := [key for key, value in given.items() if isinstance(value, list | dict)]:
        raise IllegalDescription(
            f"{where}: source.{wrong[0]} is a list or a table; allowed: text, a number, true, false"
        )
    # TOML's true and numbers become what Spark's options are: text.
    options = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}
    folded = {key.lower().removeprefix("eventhubs.") for key in options}
    if connection_string is not None and "connectionstring" not in folded:
        options["connectionString"] = connection_string
        if ca_file is not None and "cafile" not in folded:
            options["caFile"] = ca_file
    if "maxeventspertrigger" not in folded:
        options["maxEventsPerTrigger"] = _EVENTS_LIMIT
    try:
        parse_options(options, is_stream=True)
    except IllegalOption as error:
        raise IllegalDescription(f"{where}: source: {error}") from None
    return options


def _fields(given: Mapping[str, Any], fields: Sequence[Field] | None, where: str) -> dict[str, Value]:
    """The values by the fields, defaults filled in; fields None: as they are."""
    if fields is None:
        return dict(given)
    _known(where, given, [one.name for one in fields])
    found: dict[str, Value] = {}
    for one in fields:
        if one.name in given and given[one.name] != one.default:
            found[one.name] = one.read(given[one.name], f"{where}.{one.name}")
        elif one.default is None:
            raise IllegalDescription(f"{where}.{one.name} is missing: {one.meaning}; allowed: {one.allowed}")
        else:
            found[one.name] = one.default
    return found
