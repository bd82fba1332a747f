import sys

import pytest

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.errors import ENTITY_EXISTS, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.entity import Availability
from hubweir.testing.event_loops import LOOPS
from hubweir.testing.running_namespace import running_namespace


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_a_namespace_runs_and_hubs_can_be_made_and_removed(loop: str) -> None:
    with running_namespace(loop=loop) as namespace:
        assert namespace.create_event_hub("orders", partition_count=3).partition_count == 3
        with pytest.raises(ServiceError) as refused:
            namespace.create_event_hub("ORDERS")
        assert refused.value.condition is ENTITY_EXISTS

        async def names() -> list[str]:
            connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
            hubs = await Management(connection).list_hubs()
            await connection.close()
            return [hub.name for hub in hubs]

        assert namespace.run(names()) == ["orders"]
        namespace.delete_event_hub("orders")
        assert namespace.run(names()) == []
        assert namespace.ca_file is not None and namespace.ca_file.exists()
        data = namespace.service.settings.data
    assert not namespace.ca_file.exists(), f"{data} should be gone"


def test_two_namespaces_stand_side_by_side() -> None:
    with running_namespace() as one, running_namespace(host=("127.0.0.2",)) as other:
        assert (one.host, other.host) == ("127.0.0.1", "127.0.0.2")
        one.create_event_hub("orders")
        assert other.create_event_hub("orders").name == "orders"


@pytest.mark.skipif(sys.platform != "linux", reason="several broker processes are served on Linux alone")
def test_a_namespace_of_broker_processes_is_managed_in_the_same_way() -> None:
    with running_namespace(brokers=2) as namespace:
        namespace.create_queue("orders")
        changed = namespace.change_queue("orders", availability=Availability.DISABLED)
        assert changed.availability is Availability.DISABLED
        namespace.create_event_hub("readings", partition_count=4)

        async def names() -> list[str]:
            connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
            hubs = await Management(connection).list_hubs()
            await connection.close()
            return [hub.name for hub in hubs]

        assert namespace.run(names()) == ["readings"]
        with pytest.raises(AssertionError, match="processes of their own"):
            _ = namespace.service
