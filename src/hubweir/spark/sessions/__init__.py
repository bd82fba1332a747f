"""Spark sessions that know event hubs. Floor: apps.

registration.py makes the formats known to any session; local_session.py starts one with the settings that event hubs
want, on the Java that java.py finds.
"""
