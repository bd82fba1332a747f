"""Namespaces as ARM has them: one namespace of ours is one of Microsoft.EventHub and one of Microsoft.ServiceBus.

Its Sku is its profile, and stays; its capacity is its throughput units. Location and tags are tags.py.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.arm.documents import Document, answer, page, resource, time_of
from hubweir.gateway.arm.look_and_act import look_and_act, look_and_delete
from hubweir.gateway.arm.members import Members
from hubweir.gateway.arm.operation import ArmCall
from hubweir.gateway.arm.tags import UNTOLD, check_location, wanted_location, wanted_tags
from hubweir.gateway.gateway import Gateway, SharedProcess
from hubweir.gateway.http.exchange import Response, answer_of
from hubweir.gateway.http.namespaces import find_namespace, management_of
from hubweir.gateway.keeper.keeper import Tags
from hubweir.gateway.namespace_management import NewNamespace
from hubweir.namespace.names import check_namespace_name
from hubweir.namespace.resource_path import fold

TIERS = ("basic", "standard", "premium")
# What is the same whatever a request says of it: told nowhere, or always so here.
_READ_ONLY = (
    "provisioningState", "status", "createdAt", "updatedAt", "serviceBusEndpoint", "metricId",
    "kafkaEnabled", "zoneRedundant", "minimumTlsVersion", "publicNetworkAccess", "premiumMessagingPartitions",
    "privateEndpointConnections",
)  # fmt: skip


def namespace_document(call: ArmCall, gateway: Gateway) -> Document:
    name, described = gateway.settings.namespace, gateway.namespace.description
    units = described.units
    tier = _tier(gateway)
    return resource(
        call.path.id_of("namespaces", name),
        f"{call.path.provider}/Namespaces",
        name,
        {
            "provisioningState": "Succeeded",
            "status": "Active",
            "createdAt": time_of(described.created_at_ms),
            "updatedAt": time_of(described.updated_at_ms),
            "serviceBusEndpoint": f"https://{gateway.settings.host_name}:443/",
            "isAutoInflateEnabled": units.maximum > 0,
            "maximumThroughputUnits": units.maximum,
            "kafkaEnabled": False,
            "zoneRedundant": False,
            "disableLocalAuth": False,
        },
        location=described.location or UNTOLD,
        tags=dict(described.tags),
        sku={"name": tier, "tier": tier, "capacity": units.held},
    )


async def list_namespaces(call: ArmCall) -> Response:
    return page(call.request, call.gateway.process.gateways, partial(namespace_document, call))


async def get_namespace(call: ArmCall) -> Response:
    return answer(namespace_document(call, call.gateway))


async def put_namespace(call: ArmCall) -> Response:
    """Make a namespace, or change the units and the tags of one that is there.

    After a crash in the middle it is there without location and tags: a request that comes again gives it both.
    """
    name, wanted, process = call.names["namespace"], await _wanted(call), call.gateway.process
    new = NewNamespace(
        name=name,
        profile=wanted.profile,
        throughput_units=wanted.units or 0,
        maximum_throughput_units=wanted.maximum or 0,
    )

    async def attempt() -> Response:
        there = _find(process, name)
        if there is not None:
            await _change(there, wanted)
            return answer(namespace_document(call, there))
        await management_of(process.default).create(new)
        made = find_namespace(process.default, name)
        await _tag(made, wanted)
        return answer(namespace_document(call, made), 201)

    return await look_and_act(attempt)


async def patch_namespace(call: ArmCall) -> Response:
    await _change(call.gateway, await _wanted(call))
    return answer(namespace_document(call, call.gateway))


async def delete_namespace(call: ArmCall) -> Response:
    name, process = call.names["namespace"], call.gateway.process

    def find() -> Awaitable[object] | None:
        if _find(process, name) is None:
            return None
        return management_of(process.default).delete(name)

    return await look_and_delete(find)


async def check_name(call: ArmCall) -> Response:
    """Whether a namespace of a name could be made."""
    members = await call.members()
    name = members.text("name")
    members.pass_over("type")
    members.finish()
    if name is None:
        raise ServiceError(ARGUMENT_ERROR, "The property 'name' is missing.")
    told: Document = {"nameAvailable": True, "reason": "None", "message": ""}
    try:
        check_namespace_name(name)
    except ServiceError as refusal:
        told = {"nameAvailable": False, "reason": "InvalidName", "message": refusal.text}
    if _find(call.gateway.process, name) is not None:
        text = f"There is a namespace '{name}' already."
        told = {"nameAvailable": False, "reason": "NameInUse", "message": text}
    return answer(told)


def _find(process: SharedProcess, name: str) -> Gateway | None:
    """Of the namespace of that name, as this process serves it now."""
    return next((each for each in process.gateways if fold(each.settings.namespace) == fold(name)), None)


def _tier(gateway: Gateway) -> str:
    """The Sku that a namespace's profile is told as; profiles without quotas have those of Standard."""
    profile = gateway.namespace.profile.name
    return profile.capitalize() if profile in TIERS else "Standard"


@dataclass(frozen=True, slots=True)
class _NamespaceWish:
    """What a request says; None: it says nothing about it. profile: "" likewise."""

    profile: str
    units: int | None
    maximum: int | None
    location: str | None
    tags: Tags | None


async def _wanted(call: ArmCall) -> _NamespaceWish:
    members = await call.members()
    members.pass_over("id", "name", "type", "systemData")
    location, tags = wanted_location(members), wanted_tags(members)
    sku, properties = members.members("sku"), members.members("properties")
    members.finish()
    profile = _profile(sku)
    units = sku.number("capacity")
    sku.finish()
    inflates = properties.flag("isAutoInflateEnabled")
    maximum = properties.number("maximumThroughputUnits")
    properties.pass_over(*_READ_ONLY)
    properties.finish()
    if inflates is False:
        maximum = 0
    if inflates and not maximum:
        raise ServiceError(ARGUMENT_ERROR, "Auto-inflate needs a 'properties.maximumThroughputUnits' above 0.")
    return _NamespaceWish(profile, units, maximum, location, tags)


def _profile(sku: Members) -> str:
    name, tier = sku.text("name"), sku.text("tier")
    said = fold(name or tier or "")
    if said and said not in TIERS:
        raise sku.wrong("name", "Basic, Standard or Premium")
    return said


async def _tag(gateway: Gateway, wanted: _NamespaceWish) -> None:
    """Give a namespace the tags that are wanted, and the location where it has none.

    ServiceError: somebody else gave it another location meanwhile.
    """
    known = gateway.namespace.description
    location = wanted.location if not known.location else None
    tags = None if wanted.tags == known.tags else wanted.tags
    if location is not None or tags is not None:
        await answer_of(partial(gateway.keeper.change_tags, location, tags))
    check_location(gateway.settings.namespace, gateway.namespace.description.location, wanted.location)


async def _change(gateway: Gateway, wanted: _NamespaceWish) -> None:
    tier = _tier(gateway)
    if wanted.profile and wanted.profile != fold(tier):
        text = (
            f"The namespace '{gateway.settings.namespace}' is of the Sku {tier}, and stays so while it is served: make "
            "another one, or start the service with another --profile."
        )
        raise ServiceError(ARGUMENT_ERROR, text)
    check_location(gateway.settings.namespace, gateway.namespace.description.location, wanted.location)
    await _tag(gateway, wanted)
    if wanted.units is not None or wanted.maximum is not None:
        await answer_of(partial(gateway.units.change, held=wanted.units, maximum=wanted.maximum))
