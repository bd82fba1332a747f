"""The HTTP door: for now whether the service lives and is ready. Floor: servers. Start with application.py."""
