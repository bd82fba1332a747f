"""The catalogs of several processes: one process keeps them, the others follow it. Floor: servers.

Start with keeper.py, what a gateway asks of whoever keeps its catalog. In the process that writes it that is
gateway/catalog_keeper.py; in every other one it is followed_namespace.py, on a copy (namespace/followed_catalog.py)
that client.py has followed over one stream. server.py stands at the other end of that stream, and has what each process
is lent of throughput units, which it charges with lent_units.py. uses_everywhere.py asks all processes what they saw of
the use of an entity. answer_limit.py bounds waits for a keeper that stalls. The commands are
broker/commands/keeper.py. The page is docs/brokers.md.
"""
