"""Connections, sessions, links and deliveries (AMQP 1.0 part 2). Floor: engine; no I/O, time is passed in.

Read performatives.py (the nine frames) and events.py (what the engine reports), then connection.py, session.py, link.py
with its two halves sender_link.py and receiver_link.py; joint_send.py sends on several. The state machines are tables:
connection_states.py, session_states.py, link_states.py, made of state.py. Arithmetic has small modules of its own:
serial_number.py, session_window.py, link_credit.py, unsettled ranges in delivery.py. faults.py says which scope a
peer's mistake ends. Reads go through read_frames.py, which turns a whole buffer into few calls; what its flows say is
flow_said.py.

Frames are written by frame.py and cut out of reads by frame_reader.py; those that the peer's window does not take wait
in held_frames.py. report.py joins what one read brought into events. settings.py has every limit; budget.py counts a
peer's memory, idle_clock.py its silence. Numbers that are taken and given back are number_pool.py and link_handles.py,
dispositions settlement.py.
"""
