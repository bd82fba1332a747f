"""The HTTP door: events in, hubs managed as ATOM entries, is the service alive. Floor: servers.

Start with router.py, the one table of what there is and which right it needs (route.py is one line of it), then
application.py, the life of one request. Events come in at send_events.py; event_json.py and custom_properties.py say
what a request makes of them. Descriptions are entities.py, written by atom.py and read by description_xml.py; logic
that is not HTTP's own stands in gateway/management_view.py and gateway/catalog_keeper.py. Errors become answers in
problem.py. The page is docs/http.md.

health.py needs no token. Values of a request and its answer are exchange.py, an event as bytes event_message.py; bodies
are read strictly, by body_json.py and strict_xml.py.
"""
