"""What stays together when tests run in several workers, and which of it begins first.

A group runs in one worker, in order. It is a file, because servers and processes are shared within files; and the whole
of tests/spark, because it has one Spark session. What takes long begins first, so that no worker is left alone with it
at the end.
"""

from __future__ import annotations

FOLDERS = ("tests/spark",)

# Seconds of a run, roughly: only their order counts. A group without a line takes fewer. --durations=0 tells them.
SECONDS = {
    "tests/simulation/test_whole_world.py": 6_000,  # with --all; else 420
    "tests/soak/test_long_life.py": 1_950,  # with --all; else 160
    "tests/crash/test_official_faults.py": 1_350,  # with --all; else 55
    "tests/spark": 1_300,  # with --all; else 315
    "tests/conformance/soak/test_soak.py": 1_060,  # with --all; else 21
    "tests/simulation/test_ordered_faults.py": 960,  # with --all; else 27
    "src/hubweir/queue/tests/test_transaction_histories.py": 700,  # with --all; else 10
    "tests/models/test_session_lock.py": 450,  # with --all; else 29
    "tests/documents/test_fresh_environment.py": 420,  # with --all; else none
    "src/hubweir/queue/tests/test_queue_model.py": 300,  # with --all; else 7
    "tests/simulation/test_lost_files.py": 200,  # with --all; else 4
    "tests/simulation/test_taken_over.py": 200,  # with --all; else 3
    "tests/documents/test_noun_pages.py": 185,
    "tests/portal/test_portal_in_chromium.py": 160,
    "tests/conformance/test_azure_sync.py": 135,
    "tests/conformance/test_servicebus_time.py": 105,
    "tests/conformance/test_servicebus_topics.py": 105,
    "tests/crash/test_network_faults.py": 100,
    "tests/crash/test_restore_kill.py": 100,
    "tests/documents/test_page_sessions.py": 100,
    "tests/conformance/foreign/test_java_queues.py": 95,
    "tests/conformance/test_servicebus_partitioned_receives.py": 95,
    "tests/crash/test_broker_kill.py": 95,
    "tests/conformance/test_azure_async.py": 90,
    "tests/crash/test_kill.py": 90,
    "tests/models/test_duplicate_window.py": 90,  # with --all; else 7
    "tests/models/test_peek_lock.py": 90,  # with --all; else 6
    "tests/models/test_play_duplicate_window.py": 90,  # with --all; else 8
    "tests/models/test_play_peek_lock.py": 90,  # with --all; else 7
    "tests/models/test_play_session_lock.py": 90,  # with --all; else 22
    "tests/models/test_transaction.py": 90,  # with --all; else 1
    "tests/conformance/test_servicebus_partitioned.py": 85,
    "tests/conformance/test_servicebus_sync.py": 85,
    "tests/crash/test_hung_stop.py": 85,
    "tests/conformance/test_servicebus_async.py": 70,
    "tests/conformance/foreign/test_javascript_queues.py": 65,
    "tests/conformance/test_servicebus_forwarding.py": 65,
    "tests/conformance/test_servicebus_sessions.py": 65,
    "tests/crash/test_capture_kill.py": 65,
    "tests/image/test_dockerfile.py": 65,  # with --all; else 15
    "src/hubweir/cli/tests/test_store_restore.py": 60,
    "tests/conformance/test_servicebus_interruptions.py": 60,
    "src/hubweir/testing/tests/test_pytest_plugin.py": 55,
    "tests/conformance/foreign/test_go_queues.py": 55,
    "tests/conformance/test_results.py": 55,
    "tests/crash/test_broker_faults.py": 55,
    "src/hubweir/cli/tests/test_store_move.py": 50,
    "tests/conformance/test_partitioned_administration.py": 50,
    "tests/conformance/test_servicebus_altered.py": 50,
    "tests/conformance/test_troubled_disk.py": 50,
    "tests/crash/test_broker_stores.py": 50,
    "tests/crash/test_message_kill.py": 50,
    "src/hubweir/broker/tests/test_retention_sweep.py": 40,
    "tests/capture/test_blob_capture.py": 40,
    "tests/crash/test_hung_start.py": 40,
    "tests/crash/test_stalled_broker_clients.py": 40,
    "src/hubweir/cli/tests/test_store_move_kinds.py": 35,
    "src/hubweir/service/tests/test_running_restores.py": 35,
    "src/hubweir/service/tests/test_running_settings.py": 35,
    "src/hubweir/tests/test_steady_service.py": 35,
    "tests/conformance/foreign/test_rhea_queues.py": 35,
    "tests/conformance/test_azure_readers.py": 35,
    "tests/conformance/test_azure_websocket.py": 35,
    "tests/conformance/test_capture.py": 35,
    "tests/crash/test_delete_kill.py": 35,
    "tests/conformance/foreign/test_java.py": 30,
    "tests/conformance/test_administration.py": 30,
    "tests/conformance/test_raw_tokens.py": 30,
    "tests/conformance/test_servicebus_errors.py": 30,
    "tests/crash/test_service_power_cut.py": 30,
    "tests/crash/test_transaction_kill.py": 30,
    "tests/documents/test_troubleshooting.py": 30,
    "tests/simulation/test_fragment_histories.py": 30,
    "src/hubweir/cli/tests/test_store_backup.py": 25,
    "src/hubweir/gateway/http/tests/test_testcontrol.py": 25,
    "src/hubweir/service/tests/test_restore_refusals.py": 25,
    "src/hubweir/service/tests/test_trace_export.py": 25,
    "tests/conformance/foreign/test_javascript.py": 25,
    "tests/conformance/test_made_namespaces.py": 25,
    "tests/conformance/test_namespaces.py": 25,
    "tests/conformance/test_proton_queues.py": 25,
    "tests/crash/test_broker_clients.py": 25,
    "tests/simulation/test_failing_calls.py": 25,
    "tests/simulation/test_log_histories.py": 25,
    "src/hubweir/drivers/tests/test_loop_watch.py": 20,
    "src/hubweir/gateway/http/tests/test_ordered_faults.py": 20,
    "src/hubweir/gateway/http/tests/test_purged_hub.py": 20,
    "src/hubweir/service/tests/test_served_namespaces.py": 20,
    "tests/conformance/test_arm_clients.py": 20,
    "tests/conformance/test_logs.py": 20,
    "tests/conformance/test_queue_addresses.py": 20,
    "tests/documents/test_readme_session.py": 20,
    "tests/simulation/test_capture_histories.py": 20,
    "src/hubweir/drivers/tests/test_garbage_collector.py": 19,
    "tests/crash/test_forward_kill.py": 19,
    "src/hubweir/gateway/tests/test_namespace_units.py": 18,
    "src/hubweir/gateway/tests/test_transaction_endings.py": 18,
    "tests/conformance/test_alarms.py": 18,
    "tests/conformance/test_proton_transactions.py": 18,
    "src/hubweir/broker/tests/test_wire.py": 17,
    "src/hubweir/service/tests/test_portal_on_demand.py": 16,
    "tests/conformance/foreign/test_go.py": 16,
    "tests/conformance/test_raw_events.py": 16,
    "tests/conformance/test_raw_partitioned.py": 16,
    "tests/conformance/test_raw_queues.py": 16,
    "tests/conformance/test_raw_transactions.py": 16,
    "tests/conformance/test_servicebus_http.py": 16,
    "tests/crash/test_short_of_files.py": 16,
    "src/hubweir/client/tests/test_official_clients.py": 15,
    "src/hubweir/spark/source/tests/test_range_reader.py": 15,
    "tests/attacks/test_attacks.py": 15,
    "tests/conformance/test_azure_damage.py": 15,
    "src/hubweir/cli/tests/test_store_folders.py": 14,
    "src/hubweir/gateway/arm/tests/test_look_and_act.py": 14,
    "src/hubweir/portal/tests/test_avro_reading.py": 14,
    "src/hubweir/service/tests/test_service.py": 14,
    "tests/conformance/test_servicebus_stalled_store.py": 14,
    "tests/crash/test_full_disk.py": 14,
    "tests/crash/test_ordered_everywhere.py": 14,
    "tests/simulation/test_damaged_stores.py": 14,
    "src/hubweir/cli/tests/test_chosen_namespace.py": 13,
    "src/hubweir/client/tests/test_administration.py": 13,
    "src/hubweir/testing/tests/test_server_process.py": 13,
    "tests/conformance/test_raw_connection.py": 13,
    "tests/conformance/test_raw_sessions.py": 13,
    "tests/crash/test_power_cut.py": 13,
    "tests/simulation/test_producer_crashes.py": 13,
    "src/hubweir/drivers/tests/test_amqp_driver.py": 12,
    "src/hubweir/drivers/tests/test_websocket_driver.py": 12,
    "tests/conformance/foreign/test_rhea.py": 12,
    "src/hubweir/broker/tests/test_producers.py": 11,
    "src/hubweir/gateway/http/tests/test_messaging_entities.py": 11,
    "src/hubweir/gateway/http/tests/test_send_events.py": 11,
    "src/hubweir/service/tests/test_supervised_process.py": 11,
    "src/hubweir/spark/captured/tests/test_places.py": 11,
    "src/hubweir/spark/source/tests/test_stream_reader.py": 11,
    "tests/conformance/test_ways.py": 11,
    "tests/documents/test_reliability_page.py": 11,
    "src/hubweir/gateway/http/tests/test_application.py": 10,
    "src/hubweir/gateway/http/tests/test_patched_entities.py": 10,
    "src/hubweir/testing/tests/test_malformed_frames.py": 10,
    "tests/attacks/test_key_updates.py": 10,
    "tests/conformance/foreign/test_patient_javascript.py": 10,
    "tests/documents/test_error_texts.py": 10,
}


def group_of(nodeid: str) -> str:
    """The group of a test: its folder, if that stays together, or its file."""
    path = nodeid.split("::", 1)[0]
    return next((folder for folder in FOLDERS if path.startswith(f"{folder}/")), path)


def seconds_of(group: str) -> int:
    """How long a group takes; 0 when nobody has written it down."""
    return SECONDS.get(group, 0)
