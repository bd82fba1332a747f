"""A hub as a table of files, by date and hour. Floor: apps.

to_lake.py is the pipeline. lake_sink.py is the sink that writes micro-batches, once each, into files (lake_files.py) or
a Delta table (delta_table.py). compaction.py joins the small files of an hour that is over, in a folder that takes the
place of the old one at once (folder_exchange.py); table_lock.py keeps two runs apart.
"""
