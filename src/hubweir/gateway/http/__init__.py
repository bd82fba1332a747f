"""The HTTP door: events in, messages in and out, entities managed as ATOM entries, and health. Floor: servers.

Start with router.py, the one table of what there is and which right it needs (route.py is one line of it), then
application.py, the life of one request. Events come in at send_events.py; event_json.py and custom_properties.py say
what a request makes of them. Messages come in at send_messages.py and go out at receive_messages.py, where one receive
is head_receive.py, and of several fragments partitioned_receive.py; locked_messages.py settles them and renews their
locks. Which part of a queue a path names is message_source.py. broker_properties.py and property_headers.py read what a
request says of a message, received_message.py writes it.

Event hubs are managed by entities.py, their descriptions written by atom.py and read by description_xml.py. Queues,
topics and subscriptions are messaging_entities.py, messaging_content.py and messaging_xml.py, their rules rule_xml.py;
forward_authorization.py asks whether an entity may forward. named_entities.py is what all of them share a path for, and
entity_requests.py what their requests have in common; logic that is not HTTP's own stands in
gateway/management_view.py and gateway/catalog_keeper.py. Errors become answers in problem.py. The page is docs/http.md.

health.py needs no token, status_page.py and testcontrol.py one that may manage, purged_hub.py one that may manage the
hub, namespaces.py one of the default namespace. metrics_page.py is /metrics, written by open_metrics.py.

Values of a request and its answer are exchange.py, an event as bytes is event_message.py, a send that waits for its
broker is pending_send.py; bodies are read strictly, by body_json.py, batch_json.py and strict_xml.py.
"""
