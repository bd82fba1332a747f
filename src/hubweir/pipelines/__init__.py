"""Pipelines: ready-made Structured Streaming jobs behind an event hub. Floor: apps.

Start with description.py: a pipeline is data, and catalog.py says what each takes. The jobs are small PySpark programs,
a file each: to_lake.py, dead_letters.py, windowed_aggregates.py, per_key_state.py, capture.py, replay.py. Each has one
function, `start`, that is given a Job (job.py) and hands back a stream ready to be started. runner.py runs one, with
its checkpoint, progress line and status file. What they write to is sinks.py, lake_sink.py and capture_files.py; what
they read besides hubs is capture_blocks.py and replay_source.py.

PySpark is loaded when a pipeline runs, never by listing or checking them. The page is docs/pipelines.md.
"""
