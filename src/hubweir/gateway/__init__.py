"""The gateway: connections, authentication, addresses, the way to the broker that owns a partition. Floor: servers.

Start with amqp/connection_host.py, one connection's life; then amqp/publisher_node.py and amqp/consumer_node.py, the
two kinds of link that events travel on. gateway.py is all that belongs to one namespace, gateway_process.py what the
namespaces of a process share and how a peer's is found. Which broker holds a partition is directory.py; how commands
reach it is brokers.py; what changes the catalog is catalog_keeper.py, behind management.py; what throughput units
allow is namespace_units.py. Everything here is plain code that is called back: sockets live in drivers.
"""
