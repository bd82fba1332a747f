"""The first page: the namespace at a glance, or for those without the right to manage it, the way to their entity."""

from __future__ import annotations

from hubweir.gateway.http.exchange import Response
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.topic_description import TopicDescription
from hubweir.portal.visit import Visit


async def overview(visit: Visit) -> Response:
    """Of the whole namespace; who may manage none of it, or an entity alone, is asked which one to open."""
    if not visit.may(Rights.MANAGE):
        place = visit.identity.place
        if place and visit.gateway.namespace.find_any(place) is not None:
            return visit.go("entity", place)
        return visit.show("open_entity.html", name=place)
    gateway, namespace = visit.gateway, visit.gateway.namespace
    settings, described = gateway.settings, namespace.description
    units = described.units
    return visit.show(
        "overview.html",
        counts={
            "event-hubs": len(namespace.entities(EventHubDescription)),
            "queues": len(namespace.entities(QueueDescription)),
            "topics": len(namespace.entities(TopicDescription)),
        },
        facts=(
            ("Namespace", described.name),
            ("Host names", ", ".join(described.hostnames) or settings.host_name),
            ("Profile", namespace.profile.name),
            ("Created", described.created_at_ms or None),
            ("Throughput units", str(units.held) if units.held else "Off"),
            ("Auto-inflate", f"Up to {units.maximum}" if units.maximum else "Off"),
            ("Messaging stores", f"{sum(broker.is_up for broker in gateway.brokers)} of {len(gateway.brokers)} up"),
            ("AMQP connections", str(gateway.connection_count)),
        ),
    )


async def open_entity(visit: Visit) -> Response:
    """To the page of the entity that a person typed the name of."""
    name = visit.query.get("name", "").strip().strip("/")
    return visit.go("entity", name) if name else visit.go("")
