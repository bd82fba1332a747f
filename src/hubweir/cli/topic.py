"""hubweir topic create | list | show | update | delete, with the options of `az servicebus topic`."""

from __future__ import annotations

from hubweir.cli.messaging_commands import entity_group
from hubweir.cli.messaging_options import TOPIC
from hubweir.client.atom_documents import EntityType

topic = entity_group("topic", EntityType.TOPIC, TOPIC)
