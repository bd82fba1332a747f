"""What `./run bench spark` measures, a file a section: reading, small batches, writing, capture.

events.py fills the hub that all of them use, stream_runs.py runs a query and times its batches. sources.py has what is
compared with: Spark's workers import it, so this folder's parent is on their path.
"""
