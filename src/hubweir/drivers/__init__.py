"""Where engines meet sockets, threads and the clock. Floor: servers.

Start with amqp_driver.py: one transport, one Endpoint, either role. port_switch.py lets one port speak TLS or plain,
AMQP or HTTP; http_driver.py keeps HTTP within its limits, and websocket_driver.py carries AMQP inside WebSocket
messages; tls.py makes and loads certificates. system_env.py is the real Env, with its threads in offload_pool.py;
tasks.py owns every asyncio task; open_connections.py ends all connections together. broker_driver.py carries broker
commands over a byte stream. No file here decides anything about hubs, rights or stores.
"""
