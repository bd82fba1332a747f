"""hubweir queue create | list | show | update | delete, with the options of `az servicebus queue`."""

from __future__ import annotations

from hubweir.cli.messaging_commands import entity_group
from hubweir.cli.messaging_options import QUEUE
from hubweir.client.atom_documents import EntityType

queue = entity_group("queue", EntityType.QUEUE, QUEUE)
