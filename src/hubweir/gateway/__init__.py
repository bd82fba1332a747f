"""The gateway: connections, authentication, addresses, the way to the broker that owns a partition. Floor: servers.

Start with amqp/connection_host.py, one connection's life; then amqp/publisher_node.py and amqp/consumer_node.py, the
two kinds of link that events travel on. gateway.py is all that belongs to one namespace, by settings.py;
gateway_process.py is what the namespaces of a process share, and how a peer's is found. Which broker holds a partition
is directory.py, and of the fragments of a queue fragments.py; commands reach it through brokers.py, and what publishers
send in a turn waits in append_queue.py. Of several fragments fragment_choice.py says which takes what is sent, and
fragment_turn.py brings what has no key to one that is up; fragment_shares.py sorts tokens and numbers.

authorization.py checks tokens. catalog_keeper.py makes every change of the catalog, and entity_logs.py says what
brokers do for it; idle_deletions.py deletes what nobody used for long, by entity_uses.py. forwarder.py moves messages
that are forwarded, and transfer_parts.py says which go to which of several fragments. management_view.py shows hubs,
entity_counts.py what queues, topics and subscriptions hold, status.py how all of it is, reading.py who reads hubs,
connections.py who is connected.
namespace_management.py is what makes and deletes namespaces, rule_management.py changes authorization rules,
subscription_rule_management.py the rules of subscriptions. namespace_units.py applies throughput units. byte_budget.py
limits what peers have sent and was not answered, held_runs.py what was read and not sent, receive_slots.py receives
over HTTP, management_rate.py requests for runtime information. What a queue takes and gives is queue_admission.py.
Transactions over several logs are brought to their end by transaction_endings.py. destinations.py says why messages
cannot go where they are forwarded, or sent by way of another entity. refusals.py says what a peer and the log are told
of a refusal, catalog_lines.py what the log is told of entities, in the words of setting_differences.py.
What each entity was asked for and gave out is counted in entity_traffic.py; what clients trace finds tracing.py. Faults
that a test orders are faults.py. What tests order is judged in service_orders.py, asked for from elsewhere by
asked_orders.py, and done in each process by process_orders.py.
The paths of Azure Resource Manager are arm/. Everything here is plain code that is called back: sockets live in
drivers.
"""
