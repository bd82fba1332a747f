"""Queues: messages enqueued, locked, settled, deferred, dead-lettered. Floor: domain.

Start with fragment.py, all that a fragment does on its log, and fragment_settings.py, what it is told; then
fragment_state.py, what a log says that there is. One log has two kinds of batches: messages as they came, and
operations (operation.py). The rows of messages are message_table.py, in pages of message_page.py; the locks that
receivers hold are lock_table.py; message_session.py has messages in sessions, duplicate_window.py the ids that were
there before, by the time of window_clock.py. fragment_number.py is what tells numbers of fragments apart.

The parts of a fragment share fragment_core.py: message_receives.py has what each fragment_receiver.py waits for,
session_receives.py those in sessions; message_giving.py gives messages out by receive_values.py. settlements.py takes
tokens, session_holds.py has who holds which session, due_messages.py does what time asks for,
upkeep.py saves, trims and moves. Messages are read by message_reads.py, those that are named by numbered_messages.py;
what a receiver changed of one is changed_properties.py. A snapshot is fragment_snapshot.py, and log_replay.py goes on
from it. sub_queue.py and settle_outcome.py are the words of receivers, fragment_values.py what goes in and comes out,
and queue_part.py says what an address names.

Messages that are forwarded leave by forwarding.py and come by transfer_intake.py; what logs say of that is
transfers.py, what a message was first forward_origin.py. A transfer's records are forwarded_run.py, what one of them
has to say besides forwarded_record.py, the id of one that came without given_id.py. What dead-lettering says of a
message is dead_letter_properties.py. Steps that clients' traces have spans of are traced_step.py.

Which fragment a message belongs to says its key, message_key.py.

Effects of a transaction are transaction.py, what of them is one fragment's transaction_parts.py. Of those over several
logs transaction_decisions.py decides, and logged_transactions.py is what a log has. arrived_records.py reads batches.
"""
