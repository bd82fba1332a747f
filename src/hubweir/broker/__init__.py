"""Brokers: each owns one messaging store and runs what gateways ask of it. Floor: servers.

Start with commands/, the seam: everything a gateway may ask and every answer. broker.py runs what concerns all logs,
and hands a command about one log to the log's resident (residents.py). openings.py makes residents, deletions.py ends
them, retention_sweep.py visits them now and then. What is to happen at a time is armed in deadlines.py. refusals.py
turns errors of the store into refusals. store_look.py looks at the store itself.

The resident of a partition is hosted_partition.py. A run on its way into the log is pending_store.py. Its readers are
readers.py, each of them opened_reader.py; displaced ones make room in departures.py. All its events go by purge.py. Its
idempotent producers are producers.py, with producer_snapshots.py; its cap is capping.py, with its lines in the log,
throttle_lines.py; its capture is a room of its own, capture/. Changes of one thing are done in turn by turns.py. What
all partitions share is partition_tools.py.

The resident of a fragment of a queue is hosted_fragment.py; what all fragments share is fragment_tools.py. That of a
topic is hosted_topic.py, with a resident for each subscription; rules come to it as rule_forms.py writes them.
Transactions in a log of either are hosted_transactions.py.

What it tells of a log when people ask how it is says log_status.py.

The same commands as bytes are wire.py; server.py puts a broker behind a byte stream and socket_broker.py asks it from
the other end. shared_broker.py serves calls of its own process and streams of others; remote_broker.py is their way
there, which connects again by itself. A broker knows nothing of AMQP, connections or rights, and not who asks.
"""
