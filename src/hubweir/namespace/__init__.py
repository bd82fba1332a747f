"""Namespaces: which event hubs exist, what their operators set, and where their partitions are placed. Floor: domain.

Start with descriptions.py, what may be set on each kind of entity; then namespace.py, which creates, finds, changes
and deletes them, and catalog.py, the state behind it, kept in one log. names.py says which names are legal, address.py
what an address on the wire names, host_names.py which hosts lead to a namespace, tiers.py which limits hold. The page
is docs/namespace.md.
"""
