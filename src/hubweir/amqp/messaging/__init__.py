"""Messages and what frames say about them (AMQP 1.0 part 3). Floor: codec.

sections.py finds where each section of a message lies without reading its body: all a broker needs. message.py builds
and opens whole messages, for requests, clients and tests. batch.py puts many messages into one transfer.
annotations.py lists the names Azure's services and clients give meaning to. outcome.py and amqp_error.py are how a
delivery ended; terminus.py is what a link reads from and writes to.
"""
