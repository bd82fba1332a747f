"""Brokers: each owns one messaging store and runs what gateways ask of it. Floor: servers.

Start with commands.py, the seam: everything a gateway may ask and every answer. broker.py runs commands on the
partitions that hosted_partitions.py keeps open, with readers that wait (reading.py), that make room for one another
(departures.py), idempotent producers (producers.py), one unit a partition (capping.py), and retention (timers.py). The
same commands as bytes are wire.py; server.py puts a broker behind a byte stream and socket_broker.py asks it from the
other end. A broker knows nothing of AMQP, connections or rights, and not who asks.
"""
