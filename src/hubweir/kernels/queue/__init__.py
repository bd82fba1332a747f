"""The rows of a queue: messages, locks, and what a batch says of its messages. Floor: codec. See queue_contract.py."""
