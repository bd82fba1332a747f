"""hubweir, an event and message broker that speaks AMQP 1.0 as Azure Event Hubs and Service Bus do.

Read first: event_hub/ for what a hub and its partitions are, queue/ and topic/ for messages, messaging_store/ for how
both are kept, amqp/ for the protocol, gateway/ and broker/ for the service, client/ for publishing, sending and
receiving in Python. ARCHITECTURE.md draws how they stand on one another. This page imports nothing: take what you need
from its folder.
"""

__version__ = "0.1.0"
