"""The AMQP door: one host for each connection, one node for each link. Floor: servers.

Start with connection_host.py (engine events in, node calls out; connections.py makes one a peer), then node.py (what a
node promises, and what it asks of its host). Tokens arrive at cbs_node.py, which limits their rate, questions about
entities at management_node.py, events at publisher_node.py; consumer_node.py delivers them, in the states of
reader_states.py.

Links to queues are found by queue_nodes.py: queue_sender_node.py brings messages (what it shares with publishers is
incoming_node.py), via_sender_node.py by way of another entity; queue_receiver_node.py gives them out. It has a
receiver_part.py for each fragment, which keeps what it receives as kept_messages.py says; one_part.py asks one,
fan_in.py several. A session is what session_filter.py reads, sent_tokens.py keeps tokens, settlements.py says what a
receiver's states mean, turn_settlements.py hands over what all receivers of a connection settled in a turn, and
joint_deliveries.py sends by one call what those in sessions are given; joint_settlements.py hands over what receivers
say of that.
message_management.py answers questions about messages, in the forms of message_forms.py; inquiry.py asks the fragments,
by the time that answer_deadline.py reads.

What links do in a transaction is gathered in transactions.py, of one of them in open_transaction.py;
coordinator_node.py declares and discharges.

namespace_choice.py finds the namespace of a connection, open_node.py the node behind an address. connection_claims.py
holds what the connection may do, connection_lines.py tells the log of it, told_connection.py people who ask;
connection_deadlines.py limits its time.

A reader's attach is reader_attach.py; held_run.py is what it has read, outgoing_events.py and run_cursor.py write its
events, runtime_metrics.py encodes how far its partition reaches, turn_share.py shares a turn among links,
egress_pacer.py paces one. Publishers with numbers are numbered_publisher_node.py; outcomes are gathered in
delivery_ranges.py. Requests and answers are request_node.py, in the forms of management_forms.py, capture_forms.py and
rule_requests.py; those about broker processes are broker_requests.py.
"""
