"""The lines of the service's log: one table of their kinds. Who says one names its kind and gives its fields.

A kind has the wording of its line, with a field in each pair of braces; a part in brackets is left out when a field in
it is missing. So people read a text, and programs read the same fields as JSON. service/log_output.py prints both, and
at most `per_minute` lines of a kind: a flood of one kind hides no other.

No field is a key, a token or a body. Where a peer gave one as the name of something, such as a connection string in the
place of a hub's name, it is printed as (secret). What peers chose is printed without control characters, and cut in its
middle.
Nothing is said for each event: a line is of a connection, a file, a refusal.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TypeAlias

FEW, MANY = 10, 60  # lines a minute: of what goes wrong again and again; of what comes and goes
TEXT_LIMIT = 1_024  # characters of one field

Value: TypeAlias = str | int | float | None
_PARTS = re.compile(r"\[([^\]]*)\]")
_FIELD = re.compile(r"\{(\w+)")
# What looks like a key, a signature or a JSON Web Token, also where it is percent-encoded.
_SECRETS = re.compile(
    r"((?:shared ?access ?key|account ?key|password|\bsig)(?:=|%3d))[^\s;&,'\"]+|\beyJ[\w-]+\.[\w-]+\.[\w-]+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LineKind:
    """text: the line's wording. meaning: for docs/logs.md. by: the field whose values are counted apart; it has few.

    per_minute: lines of it in a minute, and 0 for a kind that limits itself.
    """

    name: str
    level: int
    text: str
    meaning: str
    by: str = ""
    per_minute: int = FEW

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of its fields, in the order of the text."""
        return tuple(dict.fromkeys(_FIELD.findall(self.text)))

    def say(self, logger: logging.Logger, *, level: int | None = None, **fields: Value) -> None:
        """Write a line. fields: all of the kind; None and "" are missing. level: of this line; else the kind's."""
        level = self.level if level is None else level
        if logger.isEnabledFor(level):
            logger.log(level, Line(self, fields))


class Line:
    """What a record of logging has as its message: the fields, and the text when somebody wants to read it."""

    __slots__ = ("fields", "kind")

    def __init__(self, kind: LineKind, fields: dict[str, Value]) -> None:
        self.kind = kind
        self.fields = {name: plain(value) if isinstance(value, str) else value for name, value in fields.items()}

    @property
    def sort(self) -> str:
        """What it is counted with, within its kind."""
        return str(self.fields[self.kind.by]) if self.kind.by else ""

    def __str__(self) -> str:
        return _PARTS.sub(self._part, self.kind.text).format(**self.fields)

    def _part(self, found: re.Match[str]) -> str:
        part = found[1]
        missing = any(self.fields[name] in (None, "") for name in _FIELD.findall(part))
        return "" if missing else part


def plain(text: str) -> str:
    """A text for one line: no secrets, no control characters; its beginning and its end when it is long."""
    text = _SECRETS.sub(lambda found: f"{found[1] or ''}(secret)", text)
    half = TEXT_LIMIT // 2
    if len(text) > TEXT_LIMIT:
        text = f"{text[:half]} … {text[-half:]}"  # of a refusal, the end is the reference
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)


# The process
START = LineKind(
    "start", logging.INFO, "hubweir {version} starts, process {pid}, data in {data}; settings that are not default: "
    "{settings}", "The service starts; keys are shown as (secret).",
)  # fmt: skip
READY = LineKind(
    "ready", logging.INFO, "clients are taken on {addresses}, {seconds:.1f} s after the start", "Clients may come."
)
STOPPING = LineKind(
    "stopping", logging.INFO, "the service stops after {seconds:.0f} s: what was received is being settled",
    "It was told to stop.",
)  # fmt: skip
STOPPED = LineKind("stopped", logging.INFO, "the service has stopped, after {seconds:.1f} s", "All is on disk.")
START_FAILED = LineKind(
    "start-failed", logging.ERROR, "the start failed: {why}",
    "Said before `stop-left`: what was started has to stop, and a disk hangs.",
)  # fmt: skip
STOP_LEFT = LineKind(
    "stop-left", logging.ERROR, "the stop is not over after {seconds:.0f} s; it waits for: {what}. The process ends "
    "without that, with exit code 3: it loses nothing that a kill would not",
    "A disk hangs, or is very slow: the process ended as by a kill.",
)  # fmt: skip
READ_AGAIN = LineKind(
    "read-again", logging.INFO, "{what}: {outcome}", "After a SIGHUP: what was read anew, or why it stays as it was.",
    per_minute=MANY,
)  # fmt: skip

# Connections
CONNECTION_OPENED = LineKind(
    "connection-opened", logging.INFO,
    "connection {connection} of {peer} opened: namespace {namespace}[, container {container!r}][, client {client!r}]",
    "A peer opened an AMQP connection.", per_minute=MANY,
)  # fmt: skip
CONNECTION_CLOSED = LineKind(
    "connection-closed", logging.INFO,
    "connection {connection} of {peer} closed after {seconds:.1f} s: {why}; {links} links, {received} deliveries in, "
    "{sent} out[, entities {entities}]",
    "A connection ended: why, how long it was, and what it did.", per_minute=MANY,
)  # fmt: skip

# Entities
ENTITY_CREATED = LineKind(
    "entity-created", logging.INFO, "created {entity} in namespace {namespace}", "An entity is made.", per_minute=MANY
)
ENTITY_CHANGED = LineKind(
    "entity-changed", logging.INFO, "changed {entity} in namespace {namespace}: {what}",
    "An entity, or the namespace, has other settings or rules.", per_minute=MANY,
)  # fmt: skip
ENTITY_PURGED = LineKind(
    "entity-purged", logging.INFO, "purged {entity} in namespace {namespace}: {events} events are gone",
    "All events of a hub were removed, by order.", per_minute=MANY,
)  # fmt: skip
ENTITY_DELETED = LineKind(
    "entity-deleted", logging.INFO, "deleted {entity} in namespace {namespace}", "An entity is gone.", per_minute=MANY
)
NAMESPACE_CREATED = LineKind(
    "namespace-created", logging.INFO, "created namespace {namespace}, profile {profile}[, hosts {hosts}]",
    "A namespace was made while the service runs.", per_minute=MANY,
)  # fmt: skip
NAMESPACE_DELETED = LineKind(
    "namespace-deleted", logging.INFO, "deleted namespace {namespace}: {outcome}",
    "A namespace is not served any more: all of it is gone, or goes.", per_minute=MANY,
)  # fmt: skip

TEST_ORDERED = LineKind(
    "test-ordered", logging.INFO, "for a test, in namespace {namespace}: {what}",
    "Somebody set the clock forward or ordered faults, as a namespace for development takes it.",
    per_minute=MANY,
)  # fmt: skip

# Refusals: each with the reference that the peer sees
_REFUSED = " refused: {condition}, peer {peer}[, entity {entity!r}]: {text}"
CONNECTION_REFUSED = LineKind(
    "connection-refused", logging.INFO, f"connection{_REFUSED}", "This service ends a connection.", by="condition"
)
SASL_REFUSED = LineKind("sasl-refused", logging.INFO, f"SASL{_REFUSED}", "A proof that is none.", by="condition")
TOKEN_REFUSED = LineKind(
    "token-refused", logging.INFO, f"token{_REFUSED}", "A token that gives no right.", by="condition"
)
NO_SUCH_ENTITY = LineKind(
    "no-such-entity", logging.INFO,
    "no such entity: {condition}, peer {peer}[, a good token was put for {entity!r}]: {text}",
    "A good token was put to $cbs for an entity that is not there, as clients do before they ask for a link.",
    by="condition",
)  # fmt: skip
ATTACH_REFUSED = LineKind(
    "attach-refused", logging.INFO, f"attach{_REFUSED}", "A link that was asked for.", by="condition"
)
LINK_REFUSED = LineKind(
    "link-refused", logging.INFO, f"link{_REFUSED}", "A link that stood and was detached.", by="condition"
)
SEND_REFUSED = LineKind(
    "send-refused", logging.INFO, f"send{_REFUSED}", "Deliveries that were rejected.", by="condition"
)
REQUEST_REFUSED = LineKind(
    "request-refused", logging.INFO, f"request{_REFUSED}", "A request to $cbs or $management.", by="condition"
)
HTTP_REFUSED = LineKind("http-refused", logging.INFO, f"HTTP{_REFUSED}", "A request over HTTP.", by="condition")
THROTTLED = LineKind(
    "throttled", logging.WARNING, "namespace {namespace} is throttled: {text}",
    "Sends are refused, or reads wait, for want of throughput units; said when that begins.", by="namespace",
)  # fmt: skip
THROTTLED_OVER = LineKind(
    "throttled-over", logging.INFO,
    "namespace {namespace} is throttled no more, after {seconds:.1f} s: {refused} runs of sends were refused, {waited} "
    "pieces of reads waited",
    "Nothing was refused, and no read waited, for a minute.", by="namespace",
)  # fmt: skip
PARTITION_THROTTLED = LineKind(
    "partition-throttled", logging.WARNING,
    "partition {partition} of event hub {hub!r} in namespace {namespace} is throttled: {text}",
    "Sends to a partition are refused, or its readers wait, for it carries one throughput unit; said when that begins.",
    by="namespace",
)  # fmt: skip
PARTITION_THROTTLED_OVER = LineKind(
    "partition-throttled-over", logging.INFO,
    "partition {partition} of event hub {hub!r} in namespace {namespace} is throttled no more, after {seconds:.1f} s: "
    "{refused} runs of sends were refused, {waited} reads waited",
    "Nothing was refused there, and no read waited, for a minute.", by="namespace",
)  # fmt: skip

# Logs and files
CAPTURED_FILE = LineKind(
    "captured-file", logging.INFO,
    "{capture}: wrote {file}, {events} events from {first} to {last}, {bytes} bytes; {behind} events behind",
    "A captured file is finished.", per_minute=MANY,
)  # fmt: skip
RETENTION = LineKind(
    "retention", logging.INFO, "retention of {log}: {segments} segments go, records below {first} with them",
    "Records of a log are too old, or too many.", per_minute=MANY,
)  # fmt: skip
ROLL = LineKind(
    "roll", logging.INFO, "{log} goes on in a new segment at record {first}, writer epoch {epoch}",
    "A segment was full, or old enough.", per_minute=MANY,
)  # fmt: skip
SLOW_SYNC = LineKind(
    "slow-sync", logging.WARNING, "a sync of {log} took {ms} ms", "The disk took a second or more for one sync."
)
REPAIRED = LineKind(
    "repaired", logging.WARNING, "{log}: {text}", "A start, or a log after a failed sync, put something right."
)

# Alarms (alarms.py), which limit their lines themselves
ALARM = LineKind(
    "alarm", logging.ERROR, "alarm ({alarm}): {about}: {text}", "An alarm began, or its text is another.", per_minute=0
)
ALARM_STANDS = LineKind(
    "alarm-stands", logging.ERROR, "alarm stands, {often} ({alarm}): {about}: {text}",
    "One that comes and goes, at the end of a minute.", per_minute=0,
)  # fmt: skip
ALARM_OVER = LineKind(
    "alarm-over", logging.INFO, "alarm over[ after {seconds:.1f} s][, {often}] ({alarm}): {about}",
    "Its cause has gone.", per_minute=0,
)  # fmt: skip

KINDS = (
    START, READY, STOPPING, STOPPED, START_FAILED, STOP_LEFT, READ_AGAIN,
    CONNECTION_OPENED, CONNECTION_CLOSED,
    ENTITY_CREATED, ENTITY_CHANGED, ENTITY_PURGED, ENTITY_DELETED, NAMESPACE_CREATED, NAMESPACE_DELETED,
    TEST_ORDERED,
    CONNECTION_REFUSED, SASL_REFUSED, TOKEN_REFUSED, NO_SUCH_ENTITY, ATTACH_REFUSED, LINK_REFUSED, SEND_REFUSED,
    REQUEST_REFUSED, HTTP_REFUSED, THROTTLED, THROTTLED_OVER, PARTITION_THROTTLED, PARTITION_THROTTLED_OVER,
    CAPTURED_FILE, RETENTION, ROLL, SLOW_SYNC, REPAIRED,
    ALARM, ALARM_STANDS, ALARM_OVER,
)  # fmt: skip
