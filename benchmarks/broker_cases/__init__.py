"""The sections of `./run bench brokers`.

What two processes do against one: spread.py; a hop from one to the other: hop.py; fragments of one process:
fragments.py; a process that is back: restart.py. Whose processor time is whose: processes.py.
"""
