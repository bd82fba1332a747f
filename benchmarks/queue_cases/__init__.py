"""What `./run bench queue` measures, a file a section, each with the goals of its figures.

rates.py: messages in, out and through. latency.py: from when a message was due to be sent until it was received.
waiting.py: memory of what waits, and the start after a kill. sessions.py: many sessions against one. deadlines.py: how
late scheduled and expired messages come.

settler.py is the receiver of all sections, feeder.py sends single messages, queues.py makes the queues. The rates are
held against quorum_queue.py, a queue of RabbitMQ.
"""
