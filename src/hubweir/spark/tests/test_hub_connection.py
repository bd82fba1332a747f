import os
from collections.abc import Callable

from hubweir.spark import hub_connection
from hubweir.spark.hub_connection import client_of, close_clients
from hubweir.spark.source.read_options import parse_options

NewHub = Callable[..., str]
OptionsOf = Callable[..., dict[str, str]]


def test_one_client_serves_all_tasks_of_a_hub(new_hub: NewHub, options_of: OptionsOf) -> None:
    first, second = (parse_options(options_of(new_hub()), is_stream=False) for _ in range(2))
    kept = client_of(first)
    assert client_of(first) is kept and client_of(second) is not kept
    assert kept.describe().partition_ids == ("0",)
    close_clients()
    assert client_of(first) is not kept


def test_client_of_the_process_that_forked_us_is_not_ours(
    new_hub: NewHub, options_of: OptionsOf, monkeypatch: object
) -> None:
    options = parse_options(options_of(new_hub()), is_stream=False)
    kept = client_of(options)
    key = next(iter(hub_connection._clients))
    hub_connection._clients[(key[0] + 1, *key[1:])] = hub_connection._clients.pop(key)
    assert client_of(options) is not kept
    assert all(key[0] == os.getpid() for key in hub_connection._clients)
    kept.close()


def test_least_used_client_is_closed(options_of: OptionsOf) -> None:
    found = [parse_options(options_of(f"nowhere-{number}"), is_stream=False) for number in range(10)]
    clients = [client_of(options) for options in found]
    assert [client._is_closed for client in clients] == [True, True, *[False] * 8]
