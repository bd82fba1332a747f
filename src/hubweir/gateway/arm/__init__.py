"""Azure Resource Manager's paths over HTTP, for programs and templates that manage namespaces so. Floor: servers.

Start with operations.py, the one table of what is served (operation.py is one line of it), then door.py, the life of a
request: its path is a resource_path.py, its token is for the namespace that the path names, its errors are ARM's.
Handlers are namespaces.py (with tags.py), event_hubs.py, messaging.py (queues, topics, subscriptions),
subscription_rules.py and authorization_rules.py; they ask the same keepers as every other door, and look_and_act.py has
them look again where somebody else was faster. members.py reads the JSON of a request strictly, documents.py writes
resources. The page is docs/arm.md.
"""
