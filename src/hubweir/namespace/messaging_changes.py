"""Changes of a queue, a topic or a subscription: a new description as a whole, as the service has it, or what is asked.

Nothing is written here: the catalog's writer calls a change when its turn comes, with what is known at that moment.
"""

from __future__ import annotations

from dataclasses import replace as replace_fields
from typing import TypeVar

from msgspec.structs import replace

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.asked_settings import asked_settings
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of, storage_of
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rule_description import Rules
from hubweir.namespace.topic_description import TopicDescription

M = TypeVar("M", bound=MessagingDescription)


def replace_settings(
    known: M, context: ChangeContext, wanted: M, *, seen: M | None = None, rules: Rules | None = None
) -> M:
    """The entity with all settings of wanted; authorization rules stay unless rules has others.

    seen: see asked_settings. What only a new entity may be given is refused when it differs. Raises ServiceError.
    """
    wanted = asked_settings(known, wanted, seen)
    kind = known.kind.noun.capitalize()
    old, new = storage_of(known), storage_of(wanted)
    _check_unchanged(kind, "RequiresSession", delivery_of(known).requires_session, delivery_of(wanted).requires_session)
    _check_unchanged(
        kind, "RequiresDuplicateDetection", old.requires_duplicate_detection, new.requires_duplicate_detection
    )
    if new.is_partitioned != old.is_partitioned:
        is_premium = context.profile.messaging.is_premium
        way_out = "The premium tier decides it" if is_premium else "Delete it, and create it anew"
        raise ServiceError(ARGUMENT_ERROR, f"Partitioning cannot be changed for {kind}. {way_out}.")
    kept = {name: getattr(known, name) for name in _NO_SETTINGS if hasattr(known, name)}
    changed = replace(wanted, **kept, changed_at_ms=context.now_ms)
    return replace(changed, rules=known.rules if rules is None else rules).legal(context)


def partitioned_as(known: MessagingDescription | None, wanted: M) -> M:
    """What is wanted by somebody who says nothing of partitioning: what there is keeps it, what is new has none."""
    if not isinstance(wanted, QueueDescription | TopicDescription):
        return wanted
    is_partitioned = known is not None and storage_of(known).is_partitioned
    return replace(wanted, storage=replace_fields(wanted.storage, is_partitioned=is_partitioned))


def _check_unchanged(kind: str, setting: str, known: bool, wanted: bool) -> None:
    """Clients match the text. kind: with a capital letter."""
    if wanted != known:
        text = f"The value for the {setting} property of an existing {kind} cannot be changed. Delete it, and create it"
        raise ServiceError(ARGUMENT_ERROR, f"{text} anew.")


_NO_SETTINGS = ("name", "created_at_ms", "first_rule")
