"""Event hubs: events put in partitions and read in order by consumer groups. Floor: domain.

Start with partition.py, one partition on one log; then open_run.py, how a loop turn's events become a run, and
event_position.py, where a reader starts. Which partition an event goes to is hub_router.py over partition_key.py; who
reads is consumer_group.py, and who displaces whom epoch.py; idempotent producers and sinks that resume are
producer_sequence.py over producer_state.py; their state in the log is producer_log.py, read by producer_loading.py. Who
may publish under a name is publisher_policy.py. Where partitions run is broker/hosted_partition.py. The pages are
docs/event_hub.md, docs/partition.md and docs/consumer_group.md.

hub_part.py says which parts of a hub an address names, event_properties.py what properties an event may have, and
told_losses.py which groups were told of lost events.
"""
