"""Settings of a service: what they are (settings.py) and where they come from (sources.py). Floor: apps.

docs/settings.md is made from settings.py by settings_page.py; a test holds the page against it.
"""
