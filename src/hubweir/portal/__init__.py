"""The portal: pages for people at `/portal`, on every port that speaks HTTP. Floor: servers.

Start with portal.py, the life of a request, then routes.py, the one table of pages and the right that each needs.
session.py says what a cookie proves, session_cookie.py how it travels, sign_in.py who gets one; who failed and who
signed out is auth/sign_in_ledger.py, over several processes shared_ledger.py;
visit.py is one request of somebody who is signed in, form.py what they sent. Pages read and change through the
gateway alone, by the same keeper and the same commands as the other doors.

Pages: namespace_overview.py, entity_lists.py, entity_pages.py; what changes entities is creation.py, settings_pages.py,
deletion.py and consumer_group_pages.py; forwarding_rights.py says who may have one forward. What may be set is
event_hub_settings.py and messaging_settings.py, made of form_fields.py; entered_values.py tells what was touched.
Capacity and rights are scale_pages.py, capture_pages.py and access_pages.py; connect_pages.py and client_strings.py say
what programs paste, alarm_pages.py what is wrong, namespace_list.py which namespaces there are. navigation.py says
where rights let a person go, paths.py what pages are called, notices.py what was done before, paging.py how long lists
come. quantities.py and rule_words.py are people's words for numbers and rules.

What entities hold: event_explorer.py on event_peek.py, message_explorer.py on message_peek.py and message_receive.py,
shown by shown_page.py on shown_message.py, given as files by downloads.py, within the memory that held_room.py counts;
sending.py sends. A process of its own reads bodies in Avro: avro_reading.py starts it, avro_program.py is its program;
what a body says of its schema is avro_body.py.
Who reads is reader_pages.py, who is connected connection_pages.py; what a subscription takes is
subscription_rule_pages.py on subscription_rule_form.py; chart_pages.py draws what service_samples.py asks all
processes.

rendering.py fills the templates (templates/, Jinja) and gives every answer its security headers; assets.py serves
static/, where htmx and uPlot lie as their packages have them (static/licenses/NOTICE.txt). The folder is imported at
the first request to the portal and not before (service/portal_on_demand.py). The page is docs/portal.md.
"""
