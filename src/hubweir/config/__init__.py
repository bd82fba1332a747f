"""Settings of a service: what they are (settings.py) and where they come from (sources.py). Floor: apps.

Which namespaces it has, and which hosts lead to each, is namespace_settings.py.

docs/settings.md is made from settings.py by settings_page.py; a test holds the page against it.
"""
