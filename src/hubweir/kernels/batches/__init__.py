"""Stored batches: walked, checked against their checksums, followed through a log."""
