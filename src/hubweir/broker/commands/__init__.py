"""Commands of gateways to brokers, and answers: the same in one process and over a socket. Floor: servers.

command.py declares: each class says its number, which answers it has and what it costs, and wire.py, the limits of both
ends and the broker's dispatch follow from that. Then a page a subject: process.py (refusals, counters), status.py,
partition.py, producer.py, reader.py, capture.py, fragment.py, topic.py, transaction.py, forwarding.py.

What is asked of the keeper of the catalogs, and not of a broker, is keeper.py, of a whole broker process
broker_process.py, of the supervisor about who signs in sign_in.py, and about what tests order testcontrol.py. To
add a command, write its class on one of these pages, and its handler in the resident that it is for, or in broker.py;
the tests of this folder and of wire.py then hold both. (docs/extending.md)

Nothing here is shared by accident: every command and answer travels as bytes, too, and one conformance run sends all of
them over a socket pair. What a command is about is named by the id of its log, a subscription by its own: the catalog
says whose it is, and which store has it.
"""
