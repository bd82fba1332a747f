"""Settings of a queue, a topic or a subscription as options: the names of `az servicebus`, as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from hubweir.cli.durations import Duration
from hubweir.cli.hub_settings import STATUSES
from hubweir.namespace.iso_duration import BadDuration, duration_text, parse_duration

Command = Callable[..., None]


class LengthOfTime(click.ParamType[str]):
    """A length of time as descriptions have it: `PT30S` as it is, `30s` made into it."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).strip()
        if re.match(r"[0-9]+(ms|s|m|h|d)$", text):
            return duration_text(Duration().convert(text, param, ctx))
        try:
            parse_duration(text)
        except BadDuration as error:
            self.fail(f"{text!r} is no length of time such as 30s or PT30S: {error}", param, ctx)
        return text


class TrueOrFalse(click.ParamType[str]):
    """`true` or `false`, as descriptions have it."""

    name = "true|false"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return "true" if click.BOOL.convert(value, param, ctx) else "false"


@dataclass(frozen=True, slots=True)
class EntityOption:
    """One option. element: what it is called in a description."""

    flags: tuple[str, ...]
    element: str
    kind: click.ParamType[str] | click.ParamType[int]
    text: str


_TIME, _FLAG, _TEXT, _COUNT = LengthOfTime(), TrueOrFalse(), click.STRING, click.IntRange(0)
COMMON = (
    EntityOption(
        ("--default-message-time-to-live",), "DefaultMessageTimeToLive", _TIME, "How long a message may wait."
    ),
    EntityOption(("--auto-delete-on-idle",), "AutoDeleteOnIdle", _TIME, "It goes when nobody used it that long."),
    EntityOption(("--enable-batched-operations",), "EnableBatchedOperations", _FLAG, "Taken, and without effect here."),
    EntityOption(("--status",), "Status", click.Choice(STATUSES, case_sensitive=False), "What it takes part in."),
    EntityOption(("--user-metadata",), "UserMetadata", _TEXT, "A text of yours, at most 1,024 characters."),
)
DELIVERY = (
    EntityOption(("--lock-duration",), "LockDuration", _TIME, "How long a received message is locked: 5s to 5m."),
    EntityOption(
        ("--max-delivery-count", "--max-delivery"), "MaxDeliveryCount", _COUNT, "Deliveries before dead-lettering."
    ),
    EntityOption(("--enable-session",), "RequiresSession", _FLAG, "Messages belong to sessions; for ever."),
    EntityOption(
        ("--enable-dead-lettering-on-message-expiration",),
        "DeadLetteringOnMessageExpiration",
        _FLAG,
        "Expired messages are dead-lettered.",
    ),
    EntityOption(("--forward-to",), "ForwardTo", _TEXT, "Every message goes on to this queue or topic."),
    EntityOption(
        ("--forward-dead-lettered-messages-to",),
        "ForwardDeadLetteredMessagesTo",
        _TEXT,
        "Dead letters go on to this queue or topic.",
    ),
)
STORAGE = (
    EntityOption(
        ("--max-size",),
        "MaxSizeInMegabytes",
        _COUNT,
        "In megabytes: 1024, 2048, 3072, 4096 or 5120; of the profiles premium and development also 10240 to 81920, "
        "each twice the one before.",
    ),
    EntityOption(
        ("--max-message-size",),
        "MaxMessageSizeInKilobytes",
        _COUNT,
        "In kilobytes, to 102400; of the profiles premium and development.",
    ),
    EntityOption(
        ("--enable-duplicate-detection", "--duplicate-detection"),
        "RequiresDuplicateDetection",
        _FLAG,
        "A message id counts once in a window; for ever.",
    ),
    EntityOption(
        ("--duplicate-detection-history-time-window",),
        "DuplicateDetectionHistoryTimeWindow",
        _TIME,
        "How long an id counts once.",
    ),
    EntityOption(("--enable-partitioning",), "EnablePartitioning", _FLAG, "It lies in several fragments; for ever."),
    EntityOption(
        ("--enable-express",),
        "EnableExpress",
        _FLAG,
        "Sends are answered before their sync: a power cut may take the last 50 ms.",
    ),
)
QUEUE = (*DELIVERY, *STORAGE, *COMMON)
TOPIC = (*STORAGE, EntityOption(("--enable-ordering",), "SupportOrdering", _FLAG, "Kept, and told again."), *COMMON)
SUBSCRIPTION = (
    *DELIVERY,
    EntityOption(
        ("--dead-letter-on-filter-exceptions",),
        "DeadLetteringOnFilterEvaluationExceptions",
        _FLAG,
        "A message that a filter fails on is dead-lettered.",
    ),
    *COMMON,
)


def takes_members(members: Sequence[EntityOption]) -> Callable[[Command], Command]:
    """Give a command these options; it gets one `members`: elements and texts of those that were given."""

    def decorate(command: Command) -> Command:
        def with_members(**given: object) -> None:
            said = {each.element: given.pop(each.element) for each in members}
            texts = {name: str(value) for name, value in said.items() if value is not None}
            command(members=texts, **given)

        with_members.__name__, with_members.__doc__ = command.__name__, command.__doc__
        with_members.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]  # click's
        for each in reversed(members):
            with_members = click.option(*each.flags, each.element, type=each.kind, help=each.text)(with_members)
        return with_members

    return decorate
