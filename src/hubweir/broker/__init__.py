"""Brokers: each owns one messaging store and runs what gateways ask of it. Floor: servers.

Start with commands/, the seam: everything a gateway may ask and every answer. broker.py runs commands on the
partitions that hosted_partitions.py keeps open and openings.py opens, changes of one partition in turn (turns.py).
Readers are readers.py, each of them opened_reader.py; displaced ones make room in departures.py. Idempotent producers
are producers.py, one unit a partition is capping.py, retention is timers.py, and refusals.py turns errors of a store
into refusals. The same commands as bytes are wire.py; server.py puts a broker behind a byte stream and socket_broker.py
asks it from the other end. A broker knows nothing of AMQP, connections or rights, and not who asks.

Capture is a room of its own, capture/.
"""
