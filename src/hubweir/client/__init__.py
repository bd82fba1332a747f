"""The client: publish batches, receive runs, manage hubs, over AMQP 1.0. Floor: servers.

Start with connection.py, one authorised AMQP connection; then sender.py and receiver.py. What a receiver gives is an
event run (event_run.py): columns over the bytes as they came, no object per event. The page is docs/client.md.
"""
