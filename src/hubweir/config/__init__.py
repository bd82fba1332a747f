"""Settings of a service, and the Config.json files of the official emulators. Floor: apps.

What the settings are is settings.py, a table for each subject (with hubweir/limits.py, which lower floors keep too);
where they come from is sources.py. docs/settings.md is made from the first by settings_page.py, and a test holds the
page against it. Which namespaces a service has, and which hosts lead to each, is namespace_settings.py.

A Config.json goes through five files, each of which knows only the one before: file_text.py (bytes to text), jsonc.py
(text to values with places), json_file.py (a file and its problems), json_fields.py (members by type and range), and
emulator_file.py with its neighbours, which know what hubs, queues and namespaces are. What comes out is
emulator_entities.py; emulator_capture.py and emulator_messaging.py make descriptions of the catalog of it.
A template of Azure Resource Manager becomes such a file by arm_template.py, with the values of arm_expressions.py.
"""
