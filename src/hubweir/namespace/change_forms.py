"""Requests to a catalog's keeper in another process, as bytes: descriptions, and the changes made to them.

A change is a function that the keeper calls when its turn comes (changes.py), so what travels is which one, and its
arguments. Those that may travel stand in one table; each is given as `partial(function, name=value, …)`. Bytes hold
keys in clear: they go to a process of ours and nowhere else. Both ends are of one version.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from hubweir.errors import DecodeError
from hubweir.namespace.catalog_operation import hide_secret, reveal_secret
from hubweir.namespace.entity import EntityDescription, EntityKind
from hubweir.namespace.event_hub_changes import (
    add_group,
    change_group,
    remove_group,
    restore_publisher,
    revoke_publisher,
    set_settings,
)
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.kinds import Description
from hubweir.namespace.messaging_changes import replace_settings
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleKey, RuleLevel
from hubweir.namespace.rule_description import AuthorizationRuleDescription, Rules
from hubweir.namespace.secret import Secret
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription
from hubweir.namespace.topic_description import TopicDescription

T = TypeVar("T")

KINDS: dict[EntityKind, type[EntityDescription]] = {
    made.kind: made for made in (EventHubDescription, QueueDescription, TopicDescription, SubscriptionDescription)
}


class _SetSettings(msgspec.Struct, tag="set-settings"):
    wanted: EventHubDescription
    seen: EventHubDescription | None = None
    rules: Rules | None = None


class _AddGroup(msgspec.Struct, tag="add-group"):
    name: str
    user_metadata: str = ""


class _ChangeGroup(msgspec.Struct, tag="change-group"):
    name: str
    user_metadata: str | None


class _RemoveGroup(msgspec.Struct, tag="remove-group"):
    name: str


class _RevokePublisher(msgspec.Struct, tag="revoke-publisher"):
    publisher: str


class _RestorePublisher(msgspec.Struct, tag="restore-publisher"):
    publisher: str


class _ReplaceSettings(msgspec.Struct, tag="replace-settings"):
    wanted: Description
    seen: Description | None = None
    rules: Rules | None = None


class _CreateRule(msgspec.Struct, tag="create-rule"):
    rule: AuthorizationRuleDescription


class _ChangeRule(msgspec.Struct, tag="change-rule"):
    name: str
    rights: Rights


class _RenewKey(msgspec.Struct, tag="renew-key"):
    name: str
    key: RuleKey
    secret: Secret


class _RemoveRule(msgspec.Struct, tag="remove-rule"):
    name: str


# The changes that may travel, and the form of their arguments: of entities, and of a level's authorization rules.
_CHANGES: dict[Callable[..., Any], type[msgspec.Struct]] = {
    set_settings: _SetSettings,
    add_group: _AddGroup,
    change_group: _ChangeGroup,
    remove_group: _RemoveGroup,
    revoke_publisher: _RevokePublisher,
    restore_publisher: _RestorePublisher,
    replace_settings: _ReplaceSettings,
    RuleLevel.create: _CreateRule,
    RuleLevel.change: _ChangeRule,
    RuleLevel.renew: _RenewKey,
    RuleLevel.remove: _RemoveRule,
}
_FUNCTIONS = {form: function for function, form in _CHANGES.items()}


def encode_change(change: Callable[..., Any]) -> bytes:
    """The bytes of a change: `partial` of a function of the table, with all that is its own by name."""
    assert isinstance(change, partial) and change.func in _CHANGES and not change.args, f"{change} has no form"
    return _encode(_CHANGES[change.func](**change.keywords))


def decode_change(data: bytes) -> Callable[..., Any]:
    """The change that was encoded, to be called with what it changes. Raises DecodeError."""
    form = _decode(_FORMS, data)
    names = form.__struct_fields__
    return partial(_FUNCTIONS[type(form)], **{name: getattr(form, name) for name in names})


def encode_description(description: EntityDescription) -> bytes:
    """The bytes of what an operator set on an entity."""
    return _encode(description)


def decode_description(data: bytes) -> Description:
    """The description that was encoded. Raises DecodeError."""
    return _decode(_DESCRIPTIONS, data)


def encode_subscription_rule(rule: SubscriptionRuleDescription) -> bytes:
    """The bytes of a rule of a subscription."""
    return _encode(rule)


def decode_subscription_rule(data: bytes) -> SubscriptionRuleDescription:
    """The rule that was encoded. Raises DecodeError."""
    return _decode(_RULES, data)


def kind_of(value: str) -> type[EntityDescription]:
    """The class of the descriptions of a kind, by the kind's value. Raises DecodeError."""
    try:
        return KINDS[EntityKind(value)]
    except ValueError:
        raise DecodeError(f"there is no kind of entities {value[:64]!r}") from None


def _encode(value: object) -> bytes:
    return msgspec.msgpack.encode(value, enc_hook=reveal_secret)


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise DecodeError(f"what a process asks of the keeper of the catalog cannot be read: {error}") from None


_Form = (
    _SetSettings
    | _AddGroup
    | _ChangeGroup
    | _RemoveGroup
    | _RevokePublisher
    | _RestorePublisher
    | _ReplaceSettings
    | _CreateRule
    | _ChangeRule
    | _RenewKey
    | _RemoveRule
)
_FORMS: msgspec.msgpack.Decoder[_Form] = msgspec.msgpack.Decoder(_Form, dec_hook=hide_secret)
_DESCRIPTIONS: msgspec.msgpack.Decoder[Description] = msgspec.msgpack.Decoder(Description, dec_hook=hide_secret)
_RULES = msgspec.msgpack.Decoder(SubscriptionRuleDescription, dec_hook=hide_secret)
