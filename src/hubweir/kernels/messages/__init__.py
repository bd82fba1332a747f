"""Sections of a message, records made of deliveries, and messages opened for a client."""
