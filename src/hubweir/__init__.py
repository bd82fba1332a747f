"""hubweir, a partitioned event broker that speaks AMQP 1.0 as Azure Event Hubs does.

Where to look first: event_hub/ for what a hub and its partitions are, messaging_store/ for how events are kept,
amqp/ for the protocol, gateway/ and broker/ for the service, client/ for publishing and receiving in Python.
ARCHITECTURE.md draws how they stand on one another. This page imports nothing: take what you need from its folder.
"""

__version__ = "0.1.0"
