"""Capture: the events of a hub as Avro files, one per partition and window, made beside the log. Floor: domain.

Start with capture.py, what one partition's capture decides; then capture_mark.py, what it remembers over a kill, and
window.py and archive_name.py. avro.py frames what the kernel encodes; destination.py is where files go, with the local
folder; pace.py is how fast it goes beside publishers. What runs it is broker/capture/runner.py; the page is
docs/capture.md.
"""
