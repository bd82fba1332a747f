"""Captured files made by Spark, and read again before the live events of their hub. Floor: apps.

capture.py is the pipeline that makes them: blocks.py makes Avro blocks in the tasks that read a hub, of events made
stored batches again (stored_events.py); windows.py counts windows in the stream's offset, and files.py puts blocks into
files. replay.py is the pipeline that reads them: history.py says which file has which events, and replay_source.py is a
stream that begins in files and goes on in the hub. Files lie in folders, where an attempt is made by local_attempts.py,
or in containers (blob_storage.py).
"""
