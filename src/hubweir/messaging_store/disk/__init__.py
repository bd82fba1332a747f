"""Files of a store on disk, and how a start finds them again: blocking calls, in any thread. Floor: storage.

Start with layout.py, the names of files and folders. files.py alone calls the operating system; read_only_files.py is a
view of it that changes nothing. whole_file.py replaces small files as a whole: clock_file.py, format_file.py,
newest_segment.py, notes.py and snapshot.py are such.

A log is segments. segment.py is one file, its header and the end that is appended to; segment_files.py is what is known
of one, sparse_index.py what finds places in it. batch_scan.py walks the batches in it, log_reader.py reads and searches
many. recovery.py is what a start makes of the files it finds, with segment_headers.py and segment_order.py.

Of a store that is not open, or another process's: inspection.py looks at it, log_copy.py copies it, renewed_log.py puts
an empty log in the place of one that is lost, moved_log.py takes one to another store.
"""
