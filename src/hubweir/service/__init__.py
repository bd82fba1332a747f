"""A running service, put together from the floors below: its data folder, a broker, a gateway a namespace. Floor: apps.

Start with service.py, the order of a start and of a stop; each step of a start is in parts.py, which alone knows
gateways and brokers both. event_loop.py says which loop it runs on. What stands where in a data folder is
data_folder.py; where it has several messaging stores, they are served_stores.py, each of them a served_store.py. Its
catalogs are stored_namespaces.py; gateway_start.py starts one namespace, with what a Config.json wants to be in it:
desired_entities.py, and desired_messaging.py for queues and topics. Namespaces that come and go while it runs are
served_namespaces.py, and namespace_removal.py ends those that were deleted; running_restores.py brings one of a
backup.py in, with its captured_files.py, by the steps of copied_logs.py. A SIGHUP is running_settings.py, and what of
it a namespace takes taken_settings.py; SIGTERM is stop_signal.py. part_settings.py says what the settings mean to each
part. completions.py waits for what answers through a callback, and bounded_stop.py has no stop take for ever, nor that
of a start which fails, whole_start.py. Peers come in by listeners.py, see certificate.py, and paste client_string.py;
people find a portal_on_demand.py. What a scrape of /metrics asks is scrape.py; spans go to a collector by
trace_export.py. The log is printed by log_output.py, at most so much of a kind as line_limit.py lets through;
service_life.py says its first and its last line.

Other, short-lived processes on a data folder are log_renewal.py, which makes one lost log anew, log_move.py, which
moves one log to another store, and namespace_restore.py, which brings a namespace of a backup in; both have the folder
as a stopped_folder.py.

Of several processes (docs/brokers.md), the one that keeps the catalogs is supervisor.py, and each of the others
broker_process.py, told what to be by process_start.py. A supervisor has each as a supervised_process.py, with a
heartbeat.py and a process_door.py to ask at, waits for all in process_starts.py, and ends each by a process_end.py;
those that another one left are found_process.py, and one question to any of them is asked_process.py. Which stores have
their logs open is opened_stores.py. What they tell one another of alarms is told_alarms.py. What a supervisor answers
them is supervisor_door.py, and about namespaces namespace_door.py, which each follows by followed_namespaces.py in the
words of told_namespaces.py; one process with several stores has a stores_door.py instead. Peers are spread over the
processes by connection_spread.py. Sockets of processes lie in a runtime_folder.py.
"""
