"""Throughput units: how much a namespace may take in and hand out a second, and what that costs. Floor: domain.

Start with throughput_unit.py, what one unit buys; then token_bucket.py, the arithmetic, and admission.py, where the
hubs of a namespace share their units. One partition's own limit is partition_cap.py; when units are added is
auto_inflate.py; what is billed is usage.py. The page is
docs/throughput_unit.md.

Where several processes serve a namespace, unit_lender.py lends to each what it needs, and lent_admission.py is what a
process admits by.

rate_limit.py joins two buckets, of bytes and of events, into the limit of one direction.
"""
