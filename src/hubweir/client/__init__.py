"""The client: publish batches, receive runs, process whole hubs, manage them, over AMQP 1.0. Floor: servers.

Start with event_hub_client.py, one hub whose senders and receivers survive their connections (lasting_connection.py);
below it lie one connection (connection.py) with its links (sender.py, receiver.py, request_link.py; numbered_sender.py
for sinks that store every row once). What a receiver gives is an event run (event_run.py): columns over the bytes as
they came, no object per event. A hub shared by several processes is event_processor.py, over load_balancer.py,
partition_pump.py and a checkpoint store. blocking.py is the same for code without an event loop. The pages are
docs/client.md and docs/event_processor.md.
"""
