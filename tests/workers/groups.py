"""What stays together when tests run in several workers, which of it computes, and which of it begins first.

A group runs in one worker, in order. It is a file, because servers and processes are shared within files; and the whole
of tests/spark, because it has one Spark session. Some groups compute all the time, and others wait for clients, servers
and limits most of it: scheduling.py runs some of either kind at any time, so that no processor is idle while all wait.
What takes long begins first, so that no worker is left alone with it at the end.
"""

from __future__ import annotations

import os

FOLDERS = ("tests/spark",)

# Seconds of a run on a machine that is otherwise idle, roughly: only their order counts. --durations=0 tells them.
# These wait for more than half of them.
WAITING = {
    "tests/soak/test_long_life.py": 1_950,  # with --all; else 120
    "tests/crash/test_official_faults.py": 1_350,  # with --all; else 30
    "tests/spark": 1_300,  # with --all; else 230
    "tests/conformance/soak/test_soak.py": 1_060,  # with --all; else 10
    "tests/documents/test_fresh_environment.py": 420,  # with --all; else none
    "tests/portal/test_portal_in_chromium.py": 155,
    "tests/documents/test_noun_pages.py": 115,
    "tests/conformance/test_azure_sync.py": 110,
    "tests/conformance/test_servicebus_time.py": 100,
    "tests/conformance/test_servicebus_topics.py": 100,
    "tests/crash/test_network_faults.py": 90,
    "tests/conformance/test_servicebus_partitioned_receives.py": 85,
    "tests/conformance/test_azure_async.py": 80,
    "tests/conformance/test_servicebus_sync.py": 80,
    "tests/conformance/test_servicebus_partitioned.py": 70,
    "tests/conformance/test_servicebus_async.py": 65,
    "tests/conformance/test_servicebus_forwarding.py": 60,
    "tests/conformance/test_servicebus_interruptions.py": 60,
    "tests/conformance/test_servicebus_sessions.py": 60,
    "tests/conformance/foreign/test_java_queues.py": 55,
    "tests/crash/test_broker_kill.py": 55,
    "tests/crash/test_hung_start.py": 55,
    "tests/crash/test_hung_stop.py": 55,
    "tests/conformance/test_troubled_disk.py": 50,
    "src/hubweir/cli/tests/test_store_restore.py": 45,
    "tests/conformance/test_servicebus_altered.py": 45,
    "tests/conformance/foreign/test_javascript_queues.py": 40,
    "src/hubweir/cli/tests/test_store_move.py": 35,
    "tests/conformance/foreign/test_go_queues.py": 35,
    "tests/conformance/test_azure_readers.py": 35,
    "tests/conformance/test_azure_websocket.py": 35,
    "tests/crash/test_stalled_broker_clients.py": 35,
    "tests/documents/test_page_sessions.py": 35,
    "src/hubweir/cli/tests/test_store_move_kinds.py": 30,
    "src/hubweir/testing/tests/test_pytest_plugin.py": 30,
    "tests/conformance/test_capture.py": 30,
    "tests/crash/test_restore_kill.py": 30,
    "src/hubweir/cli/tests/test_store_backup.py": 25,
    "src/hubweir/gateway/http/tests/test_testcontrol.py": 25,
    "src/hubweir/service/tests/test_supervised_process.py": 25,
    "tests/conformance/foreign/test_rhea_queues.py": 25,
    "tests/conformance/test_raw_tokens.py": 25,
    "tests/conformance/test_results.py": 25,
    "tests/conformance/test_servicebus_errors.py": 25,
    "tests/documents/test_troubleshooting.py": 25,
    "src/hubweir/gateway/http/tests/test_ordered_faults.py": 20,
    "tests/conformance/test_proton_queues.py": 20,
    "src/hubweir/service/tests/test_running_restores.py": 19,
    "src/hubweir/gateway/http/tests/test_purged_hub.py": 18,
    "tests/conformance/test_administration.py": 18,
    "tests/conformance/test_namespaces.py": 18,
    "tests/conformance/test_made_namespaces.py": 16,
    "tests/conformance/test_queue_addresses.py": 16,
    "tests/conformance/test_raw_transactions.py": 16,
    "src/hubweir/drivers/tests/test_amqp_driver.py": 15,
    "tests/conformance/test_proton_transactions.py": 15,
    "tests/crash/test_broker_clients.py": 15,
    "tests/crash/test_broker_stores.py": 15,
    "src/hubweir/service/tests/test_trace_export.py": 14,
    "tests/conformance/test_logs.py": 14,
    "tests/conformance/test_servicebus_http.py": 14,
    "tests/crash/test_full_disk.py": 14,
    "tests/conformance/test_raw_partitioned.py": 13,
    "tests/conformance/test_raw_queues.py": 13,
    "src/hubweir/cli/tests/test_chosen_namespace.py": 12,
    "src/hubweir/cli/tests/test_store_folders.py": 12,
    "tests/conformance/test_alarms.py": 12,
    "tests/conformance/test_raw_events.py": 12,
    "tests/conformance/test_raw_sessions.py": 12,
    "tests/crash/test_forward_kill.py": 12,
    "src/hubweir/drivers/tests/test_websocket_driver.py": 11,
    "src/hubweir/service/tests/test_service.py": 11,
    "tests/conformance/test_azure_damage.py": 11,
    "tests/conformance/test_raw_connection.py": 11,
    "tests/conformance/test_servicebus_stalled_store.py": 11,
    "src/hubweir/service/tests/test_served_namespaces.py": 10,
    "src/hubweir/spark/source/tests/test_range_reader.py": 10,
    "src/hubweir/topic/tests/test_topic_histories.py": 10,
    "tests/conformance/test_arm_clients.py": 10,
    "tests/documents/test_readme_session.py": 10,
    "src/hubweir/gateway/http/tests/test_send_events.py": 9,
    "tests/attacks/test_attacks.py": 9,
    "tests/conformance/foreign/test_go.py": 9,
    "src/hubweir/client/tests/test_official_clients.py": 8,
    "tests/conformance/foreign/test_javascript.py": 8,
    "src/hubweir/service/tests/test_restore_refusals.py": 7,
    "src/hubweir/service/tests/test_served_stores.py": 7,
    "tests/crash/test_cable.py": 7,
    "src/hubweir/cli/tests/test_main.py": 6,
    "src/hubweir/cli/tests/test_message.py": 6,
    "src/hubweir/client/tests/test_session_receiver.py": 6,
    "src/hubweir/gateway/http/tests/test_application.py": 6,
    "src/hubweir/spark/captured/tests/test_places.py": 6,
    "tests/conformance/foreign/test_patient_javascript.py": 6,
    "tests/conformance/test_printed_strings.py": 6,
    "src/hubweir/gateway/keeper/tests/test_server.py": 5,
}

# These compute, and so does a group without a line, which takes fewer seconds.
COMPUTING = {
    "tests/simulation/test_whole_world.py": 6_000,  # with --all; else 170
    "tests/simulation/test_ordered_faults.py": 960,  # with --all; else 14
    "src/hubweir/queue/tests/test_transaction_histories.py": 700,  # with --all; else 10
    "tests/models/test_session_lock.py": 450,  # with --all; else 9
    "src/hubweir/queue/tests/test_queue_model.py": 300,  # with --all; else 6
    "tests/simulation/test_lost_files.py": 200,  # with --all; else 4
    "tests/simulation/test_taken_over.py": 200,  # with --all; else 3
    "tests/models/test_duplicate_window.py": 90,  # with --all; else 4
    "tests/models/test_peek_lock.py": 90,  # with --all; else 3
    "tests/models/test_play_duplicate_window.py": 90,  # with --all; else 9
    "tests/models/test_play_peek_lock.py": 90,  # with --all; else 6
    "tests/models/test_play_session_lock.py": 90,  # with --all; else 13
    "tests/models/test_transaction.py": 90,  # with --all; else 2
    "tests/image/test_dockerfile.py": 65,  # with --all; else 9
    "tests/capture/test_blob_capture.py": 30,
    "tests/crash/test_broker_faults.py": 30,
    "tests/simulation/test_fragment_histories.py": 25,
    "tests/conformance/test_partitioned_administration.py": 20,
    "tests/simulation/test_failing_calls.py": 20,
    "src/hubweir/tests/test_steady_service.py": 18,
    "tests/simulation/test_log_histories.py": 17,
    "tests/crash/test_message_kill.py": 15,
    "src/hubweir/broker/tests/test_retention_sweep.py": 14,
    "tests/crash/test_capture_kill.py": 14,
    "tests/simulation/test_capture_histories.py": 13,
    "src/hubweir/gateway/tests/test_namespace_units.py": 12,
    "tests/crash/test_kill.py": 12,
    "src/hubweir/broker/tests/test_producers.py": 11,
    "src/hubweir/gateway/tests/test_transaction_endings.py": 11,
    "src/hubweir/portal/tests/test_avro_reading.py": 10,
    "tests/crash/test_transaction_kill.py": 10,
    "tests/conformance/foreign/test_java.py": 9,
    "tests/crash/test_service_power_cut.py": 9,
    "src/hubweir/drivers/tests/test_garbage_collector.py": 8,
}


def group_of(nodeid: str) -> str:
    """The group of a test: its folder, if that stays together, or its file."""
    path = nodeid.split("::", 1)[0]
    return next((folder for folder in FOLDERS if path.startswith(f"{folder}/")), path)


def computes(group: str) -> bool:
    """Whether it keeps a processor busy, rather than wait."""
    return group not in WAITING


def is_for_waiting(worker: str, workers: int) -> bool:
    """Whether a worker of so many is for groups that wait: as many as there are processors, and half of all at most,
    are for those that compute.

    worker: as pytest-xdist names it; the first is gw0, and those in the place of dead ones count on.
    """
    return number_of(worker) >= max(1, min(os.cpu_count() or 1, workers // 2))


def number_of(worker: str) -> int:
    return int(worker.removeprefix("gw"))


def seconds_of(group: str) -> int:
    """How long a group takes; 0 when nobody has written it down."""
    return WAITING.get(group) or COMPUTING.get(group, 0)
