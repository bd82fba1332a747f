"""The AMQP door: one host for each connection, one node for each link. Floor: servers.

Start with connection_host.py (engine events in, node calls out; connections.py makes one a peer), then node.py (what a
node promises, and what it asks of its host). Tokens arrive at cbs_node.py, questions about entities at
management_node.py, events at publisher_node.py; consumer_node.py delivers them.
"""
