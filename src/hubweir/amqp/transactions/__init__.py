"""Transactions, part 4 of the standard: what a controller asks of a coordinator. Floor: codec.

Start with requests.py: declare and discharge, which are bodies of messages to a coordinator. The target of such a link
is in messaging/terminus.py, and the states that deliveries have in a transaction are in messaging/outcome.py. What a
transaction does here, and who coordinates it, is gateway/amqp/coordinator_node.py.
"""
