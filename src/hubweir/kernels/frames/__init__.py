"""Bytes into frames and deliveries, and stored events into transfers. kernels/__init__.py says how a room is read."""
