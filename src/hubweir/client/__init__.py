"""The client: event hubs and queues over AMQP 1.0: send, receive, settle, process, manage. Floor: servers.

Start with event_hub_client.py, one hub whose senders and receivers survive their connections (lasting_connection.py);
below it lie one connection (connection.py) with its links (sender.py, receiver.py, request_link.py; numbered_sender.py
for sinks that store every row once). A link's user is link_user.py, batches are event_batch.py, tokens
connection_tokens.py; resending_sender.py and resuming_receiver.py survive, as retry.py says. What a receiver gives is
an event run (event_run.py): columns over the bytes as they came, no object per event; stored_run.py is the same over
stored batches. A hub shared by several processes is event_processor.py, over load_balancer.py, partition_pump.py with
partition_context.py, and a checkpoint store (checkpoint_store.py, memory_checkpoint_store.py,
sqlite_checkpoint_store.py); what a user gives it is processor_options.py. management.py and authorization_rules.py
manage hubs, with answers of entity_info.py; administration.py manages queues and topics, in the documents of
atom_documents.py; namespace_control.py sets clocks and orders faults for tests. blocking.py, blocking_processor.py and
blocking_queue.py are the same for code without an event loop: thin faces, made by loop_calls.py, over objects on a
loop_thread.py.

Of queues it is queue_client.py, with queue_sender.py, queue_receiver.py and session_receiver.py; a message to send is
queue_message.py. What a receiver gives is a message run (message_run.py), settled over the link that brought it
(message_link.py) or by its lock tokens (queue_requests.py, all that is asked of a queue's management node); its values
as JSON has them are plain_values.py. What several of these do together is queue_transaction.py, ended over
control_link.py.
The pages are docs/client.md, docs/event_processor.md and docs/queue_client.md.
"""
