"""Pipelines: ready-made Structured Streaming jobs behind an event hub. Floor: apps.

Start with description.py: a pipeline is data; ready_made.py says what each takes, by fields.py. The jobs are small
PySpark programs, a file each: dead_letters.py, windowed_aggregates.py and per_key_state.py here, captured files made
and replayed in captured/, tables of files in lake/. Each has one function, `start`, found by program.py, that is given
a Job (job.py) and hands back a stream ready to be started; sinks.py is what those that write to a hub share, and
named_hubs.py finds the hubs before Spark is started.

runner.py runs one, with its checkpoint, whose owner it is (checkpoint_owner.py), and a status file (run_status.py).
durable_file.py makes files appear whole; errors.py are the errors.

PySpark is loaded when a pipeline runs, never by listing or checking them. The page is docs/pipelines.md.
"""
