"""Captured files as a table in Spark. Floor: apps.

Start with capture_reader.py, what Spark calls. Where files are, and what their names tell, is places.py; file_parts.py
chooses files and shares them out to tasks, and avro_file.py reads one into Arrow record batches.
"""
