"""Capture at work: a partition's events on their way into files, beside its log. Floor: servers.

What capture decides is the domain's (capture/ of the package); here it is run. Start with switch.py, which begins,
changes and ends the capture of one partition, then runner.py, the capture itself from window to window. A runner finds
the end of a window (window_end.py), makes an intent durable (intent.py), waits for a slot (slots.py), makes the file
(captured_file.py) with pauses (rest.py), and tells what fails (failure.py). What all captures of a broker share is
captures.py. Files go where places.py says: to folders, or to containers by blob_upload.py and blob_delete.py. The page
is docs/capture.md.
"""
