"""AMQP 1.0 without input or output: bytes in, events out, bytes out. Floors: codec and engine.

The folders follow the parts of the standard, and each stands on the ones before it:

- types/        part 1: values and their encodings, and the table-driven layer for described lists
- messaging/    part 3: messages and their sections, outcomes, sources and targets, batches
- transport/    part 2: frames, connections, sessions, links, deliveries
- security/     part 5: the opening bytes and the SASL exchange

The codec floor is types/ and messaging/; transport/, security/ and the modules of this folder are the engine. Nothing
below here waits, reads a clock or touches a socket. Start with types/values.py (which Python type stands for what),
then transport/performatives.py; endpoint.py is what a driver holds, opening.py how it begins, deadlines.py how long
each step may take. response_routes.py finds the link for an answer.
"""
