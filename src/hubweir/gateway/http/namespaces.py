"""Makes, lists, shows and deletes namespaces over HTTP: JSON at `/$namespaces` and `/$namespaces/{name}`.

Only whoever may manage the default namespace may ask: its root key is what the service was started with. A namespace's
keys are in the answer that made it, and nowhere else.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hubweir.auth.authorization_rule import KEY_BYTES, Secret, new_key
from hubweir.errors import ARGUMENT_ERROR, NOT_FOUND, NOT_IMPLEMENTED, UNAUTHORIZED, ServiceError
from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.namespace_management import NamespaceManagement, NewNamespace, RestoreState
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.strict_json import IllegalJson, read_object
from hubweir.namespace.topic_description import TopicDescription

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway
    from hubweir.gateway.http.route import Match

JSON = "application/json"
BODY_BYTES = 64 * 1024
ROOT_RULE = "RootManageSharedAccessKey"
_MEMBERS = ("hostnames", "profile", "key", "throughput_units", "maximum_throughput_units")

Document = dict[str, Any]


async def list_namespaces(gateway: Gateway, request: Request, match: Match) -> Response:
    """All of the service, the default one first."""
    check_is_operator(gateway)
    return _answer({"namespaces": [document_of(each) for each in gateway.process.gateways]})


async def get_namespace(gateway: Gateway, request: Request, match: Match) -> Response:
    """One of them; 404."""
    check_is_operator(gateway)
    return _answer(document_of(find_namespace(gateway, match.names["namespace"])))


async def put_namespace(gateway: Gateway, request: Request, match: Match) -> Response:
    """Make a namespace: 201 with its root key; 409 when there is one of that name."""
    management = management_of(gateway)
    wanted = _wanted(gateway, match.names["namespace"], await request.body(BODY_BYTES, "A namespace's description"))
    await management.create(wanted)
    made = find_namespace(gateway, wanted.name)
    return _answer(document_of(made) | {"key_name": ROOT_RULE, "key": wanted.key.reveal()}, 201)


async def delete_namespace(gateway: Gateway, request: Request, match: Match) -> Response:
    """Delete a namespace with all that it holds."""
    await management_of(gateway).delete(match.names["namespace"])
    return _answer({})


async def begin_restore(gateway: Gateway, request: Request, match: Match) -> Response:
    """Begin to restore a namespace of a backup: 202, and its state is asked for; 409 when there is one of that name."""
    management, name = management_of(gateway), match.names["namespace"]
    members = _members(await request.body(BODY_BYTES, "What is to be restored"), ("source",), "A restore")
    await management.restore(name, _text(members, "source"))
    return _answer(_restore_document(name, await management.restore_state(name)), 202)


async def get_restore(gateway: Gateway, request: Request, match: Match) -> Response:
    """How far the newest restore of a namespace is; 404."""
    name = match.names["namespace"]
    return _answer(_restore_document(name, await management_of(gateway).restore_state(name)))


def check_is_operator(gateway: Gateway) -> None:
    """Refuse whoever proved rights in another namespace than the default one."""
    if gateway is not gateway.process.default:
        default = gateway.process.default.settings.namespace
        raise ServiceError(
            UNAUTHORIZED, f"Namespaces are managed with a key of the default namespace, '{default}', alone."
        )


def management_of(gateway: Gateway) -> NamespaceManagement:
    """What makes and deletes namespaces; see check_is_operator."""
    check_is_operator(gateway)
    management = gateway.process.namespaces
    if management is None:
        raise ServiceError(NOT_IMPLEMENTED, "This process makes no namespaces while it runs.")
    return management


def find_namespace(gateway: Gateway, name: str) -> Gateway:
    """The gateway of the namespace of that name; NOT_FOUND."""
    found = (each for each in gateway.process.gateways if fold(each.settings.namespace) == fold(name))
    there = next(found, None)
    if there is None:
        raise ServiceError(NOT_FOUND, f"There is no namespace '{name[:64]}'.")
    return there


def document_of(gateway: Gateway) -> Document:
    """A namespace, without its keys."""
    namespace, described = gateway.namespace, gateway.namespace.description
    return {
        "name": gateway.settings.namespace,
        "is_default": gateway is gateway.process.default,
        "profile": namespace.profile.name,
        "host_names": sorted(gateway.hosts.names),
        "created_at_ms": described.created_at_ms,
        "throughput_units": described.units.held,
        "maximum_throughput_units": described.units.maximum,
        "event_hubs": len(namespace.entities(EventHubDescription)),
        "queues": len(namespace.entities(QueueDescription)),
        "topics": len(namespace.entities(TopicDescription)),
    }


def _wanted(gateway: Gateway, name: str, body: bytes) -> NewNamespace:
    """What a body asks for; an empty one asks for what is usual. ServiceError ARGUMENT_ERROR."""
    members = _members(body, _MEMBERS, "A namespace")
    hostnames = members.get("hostnames", [])
    if not isinstance(hostnames, list) or not all(isinstance(each, str) for each in hostnames):
        raise ServiceError(ARGUMENT_ERROR, "'hostnames' is a list of texts, such as [\"hubs.example\"].")
    key = Secret(_text(members, "key"))
    return NewNamespace(
        name=name,
        hostnames=tuple(hostnames),
        profile=_text(members, "profile"),
        key=key or new_key(gateway.env.random_bytes(KEY_BYTES)),
        throughput_units=_number(members, "throughput_units"),
        maximum_throughput_units=_number(members, "maximum_throughput_units"),
    )


def _members(body: bytes, known: tuple[str, ...], thing: str) -> Document:
    """The members of a body, which may be empty. thing: what has them, for the text of an error."""
    try:
        members = read_object(body) if body.strip() else {}
    except IllegalJson as error:
        raise ServiceError(ARGUMENT_ERROR, f"The body is no JSON object: {error}.") from None
    unknown = sorted(members.keys() - set(known))
    if unknown:
        raise ServiceError(ARGUMENT_ERROR, f"{thing} has no '{unknown[0][:64]}': {', '.join(known)} exist.")
    return members


def _restore_document(name: str, state: RestoreState) -> Document:
    return {"name": name} | asdict(state)


def _text(members: Document, name: str) -> str:
    value = members.get(name, "")
    if not isinstance(value, str):
        raise ServiceError(ARGUMENT_ERROR, f"'{name}' is a text.")
    return value


def _number(members: Document, name: str) -> int:
    value = members.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ServiceError(ARGUMENT_ERROR, f"'{name}' is a whole number from 0.")
    return value


def _answer(document: Document, status: int = 200) -> Response:
    return Response(status, json.dumps(document).encode(), JSON, {"cache-control": "no-store"})
