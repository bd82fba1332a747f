"""Partition keys: found in deliveries, hashed, and deliveries grouped by partition."""
