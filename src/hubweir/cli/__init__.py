"""The command line, `hubweir`. Floor: apps.

Start with main.py, the command tree; every group of commands is a module, loaded when it is called. The page is
docs/cli.md.
"""
