"""Tools for tests: a simulated world, and whole namespaces to start in your own tests.

memory_files.py is a disk that tears, loses and fills up by a seed; simulated_env.py an Env with virtual time and a
seeded order. Both obey the interfaces of hubweir.env, so code under test does not know. replicated_log.py is a second
engine behind Log, on shared_log.py (see visible_batches.py, too); replicated_store.py runs a whole service on it.

For tests of your own pytest_plugin.py has fixtures, over hubweir_server.py and namespace_on_demand.py;
tied_server.py ends the server of a pytest that was killed.
"""
