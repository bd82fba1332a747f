"""What stays together when tests run in several workers, and which of it begins first.

A group runs in one worker, in order. It is a file, because servers and processes are shared within files; and the whole
of tests/spark, because it has one Spark session. What takes long begins first, so that no worker is left alone with it
at the end.
"""

from __future__ import annotations

FOLDERS = ("tests/spark",)

# Seconds of a run, roughly: only their order counts. A group without a line takes fewer. --durations=0 tells them.
SECONDS = {
    "tests/soak/test_long_life.py": 1_950,  # with --all; else 150
    "tests/conformance/soak/test_soak.py": 1_060,  # with --all; else 15
    "tests/simulation/test_whole_world.py": 420,  # with --all; else 45
    "tests/spark": 180,
    "tests/crash/test_restore_kill.py": 120,
    "tests/simulation/test_ordered_faults.py": 120,  # with --all; else 15
    "tests/conformance/test_azure_sync.py": 120,
    "tests/crash/test_kill.py": 110,
    "tests/crash/test_network_faults.py": 90,
    "tests/crash/test_capture_kill.py": 90,
    "tests/models/test_session_lock.py": 90,  # with --all; else 5, and so the other models
    "tests/conformance/test_azure_async.py": 85,
    "tests/conformance/foreign/test_java_queues.py": 80,
    "tests/models/test_duplicate_window.py": 80,
    "tests/models/test_peek_lock.py": 80,
    "tests/simulation/test_failing_calls.py": 80,
    "tests/conformance/test_servicebus_sync.py": 80,
    "tests/conformance/test_servicebus_time.py": 80,
    "tests/crash/test_official_faults.py": 75,
    "tests/conformance/foreign/test_java.py": 70,
    "tests/image/test_dockerfile.py": 65,  # with --all; else 20
    "tests/documents/test_noun_pages.py": 65,
    "tests/conformance/test_servicebus_sessions.py": 60,
    "tests/conformance/test_servicebus_async.py": 60,
    "src/hubweir/client/tests/test_official_clients.py": 60,
    "tests/crash/test_service_power_cut.py": 60,
    "tests/crash/test_delete_kill.py": 60,
    "tests/crash/test_message_kill.py": 60,
    "tests/crash/test_broker_kill.py": 60,
    "tests/documents/test_troubleshooting.py": 60,
    "tests/portal/test_portal_in_chromium.py": 60,
    "tests/conformance/test_servicebus_partitioned_receives.py": 60,
    "tests/conformance/test_servicebus_partitioned.py": 60,
    "tests/crash/test_broker_stores.py": 55,
    "tests/crash/test_broker_faults.py": 50,
    "tests/conformance/foreign/test_javascript.py": 50,
    "tests/conformance/test_servicebus_forwarding.py": 50,
    "tests/conformance/test_servicebus_topics.py": 50,
    "tests/conformance/test_servicebus_interruptions.py": 50,
    "tests/crash/test_power_cut.py": 45,
    "tests/conformance/foreign/test_go.py": 45,
    "tests/conformance/foreign/test_go_queues.py": 45,
    "tests/conformance/foreign/test_javascript_queues.py": 45,
    "tests/conformance/test_capture.py": 45,
    "src/hubweir/portal/tests/test_portal.py": 45,
    "tests/conformance/test_raw_queues.py": 40,
    "tests/models/test_transaction.py": 40,
    "tests/simulation/test_damaged_stores.py": 40,
    "tests/capture/test_blob_capture.py": 40,
    "src/hubweir/cli/tests/test_store_restore.py": 40,
    "tests/conformance/test_azure_readers.py": 35,
    "tests/conformance/test_azure_websocket.py": 35,
    "tests/conformance/foreign/test_rhea_queues.py": 35,
    "src/hubweir/cli/tests/test_store_move.py": 35,
    "tests/crash/test_broker_clients.py": 30,
    "tests/simulation/test_capture_histories.py": 30,
    "tests/conformance/test_proton_queues.py": 30,
    "tests/conformance/foreign/test_rhea.py": 30,
    "tests/conformance/test_administration.py": 30,
    "tests/conformance/test_servicebus_errors.py": 30,
    "tests/simulation/test_fragment_histories.py": 30,
    "src/hubweir/cli/tests/test_store_move_kinds.py": 30,
    "tests/conformance/test_results.py": 28,
    "src/hubweir/testing/tests/test_pytest_plugin.py": 28,
    "tests/simulation/test_log_histories.py": 25,
    "tests/floors/test_tidy.py": 25,
    "tests/crash/test_forward_kill.py": 25,
    "tests/conformance/test_raw_websocket.py": 25,
    "tests/conformance/test_servicebus_altered.py": 25,
    "src/hubweir/gateway/http/tests/test_testcontrol.py": 25,
    "src/hubweir/tests/test_steady_service.py": 23,
    "src/hubweir/drivers/tests/test_amqp_driver_flow.py": 20,
    "tests/conformance/test_raw_tokens.py": 20,
    "tests/conformance/test_raw_events.py": 20,
    "tests/crash/test_full_disk.py": 20,
    "tests/conformance/test_servicebus_http.py": 20,
    "src/hubweir/portal/tests/test_avro_reading.py": 20,
    "src/hubweir/gateway/http/tests/test_ordered_faults.py": 20,
    "tests/conformance/test_namespaces.py": 20,
    "tests/conformance/test_made_namespaces.py": 20,
    "tests/conformance/test_partitioned_administration.py": 20,
    "src/hubweir/gateway/http/tests/test_purged_hub.py": 18,
    "src/hubweir/cli/tests/test_store_backup.py": 18,
    "src/hubweir/service/tests/test_running_settings.py": 16,
    "tests/portal/test_pictures.py": 20,
    "src/hubweir/portal/tests/test_sign_in.py": 15,
    "tests/conformance/test_proton_transactions.py": 15,
    "tests/models/test_play_peek_lock.py": 15,
    "tests/conformance/test_queue_addresses.py": 15,
    "tests/conformance/test_logs.py": 15,
    "tests/conformance/test_raw_transactions.py": 15,
    "src/hubweir/service/tests/test_trace_export.py": 15,
    "tests/crash/test_transaction_kill.py": 15,
    "tests/conformance/test_troubled_disk.py": 13,
    "tests/documents/test_readme_session.py": 13,
    "src/hubweir/gateway/tests/test_transaction_endings.py": 12,
    "src/hubweir/cli/tests/test_store_folders.py": 12,
    "tests/conformance/test_azure_damage.py": 12,
    "src/hubweir/drivers/tests/test_amqp_driver.py": 12,
    "tests/conformance/test_alarms.py": 12,
    "src/hubweir/drivers/tests/test_websocket_driver.py": 11,
    "tests/conformance/test_raw_partitioned.py": 11,
    "src/hubweir/broker/tests/test_retention_sweep.py": 11,
    "src/hubweir/service/tests/test_service.py": 11,
    "src/hubweir/spark/source/tests/test_range_reader.py": 10,
    "src/hubweir/service/tests/test_served_namespaces.py": 10,
    "tests/conformance/test_raw_connection.py": 10,
    "src/hubweir/gateway/tests/test_namespace_units.py": 10,
}


def group_of(nodeid: str) -> str:
    """The group of a test: its folder, if that stays together, or its file."""
    path = nodeid.split("::", 1)[0]
    return next((folder for folder in FOLDERS if path.startswith(f"{folder}/")), path)


def seconds_of(group: str) -> int:
    """How long a group takes; 0 when nobody has written it down."""
    return SECONDS.get(group, 0)
