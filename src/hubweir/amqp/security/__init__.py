"""The opening bytes and the SASL exchange (AMQP 1.0 part 5). Floor: engine; no I/O.

protocol_header.py: the eight bytes that start each layer. sasl.py: the exchange, either role. mechanisms.py: which
mechanisms are offered. Who is let in is decided elsewhere: the engine reports what the peer sent, and the host answers.
"""
