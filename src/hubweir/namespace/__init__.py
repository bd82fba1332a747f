"""Namespaces: which entities exist, what their operators set, and where their logs are placed. Floor: domain.

Start with entity.py, what every kind of entity has; then namespace.py, which everybody reads, and catalog_writer.py,
which alone changes it. Behind both is catalog.py, the state, kept in one log (catalog_log.py) as catalog_operation.py.
changes.py judges what is asked for, with change_context.py, the quotas and the time. Where other processes have copies
of the catalog, catalog_followers.py says who is waited for; a copy is followed_catalog.py, and what its process asks of
the writer travels as change_forms.py.

Kinds of entities are listed in kinds.py. What may be set on an event hub is event_hub_description.py with
capture_description.py, how it changes event_hub_changes.py. queue_description.py, topic_description.py and
subscription_description.py are made of messaging_description.py, delivery_settings.py and storage_settings.py, and
change by messaging_changes.py; asked_settings.py keeps two changes at once from undoing each other. A subscription's
rule is subscription_rule.py, and all of one subscription's subscription_rules.py. availability.py says whether an
entity takes and gives anything now. namespace_description.py is the namespace itself; rule_description.py and
rule_changes.py are authorization rules on both, with rights.py and secret.py.

names.py says which names are legal, address.py what an address on the wire names, host_names.py which hosts lead to a
namespace, tiers.py and messaging_tier.py which quotas hold. iso_duration.py has lengths of time as they are written,
forward_address.py destinations of forwarding. connection_string.py, resource_path.py and strict_json.py read what
clients write; error_text.py has the texts that they match. The page is docs/namespace.md.
"""
