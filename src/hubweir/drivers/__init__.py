"""Drivers: engines meet sockets, threads and the clock here. Floor: servers.

Start with amqp_driver.py: one transport, one Endpoint, either role. port_switch.py lets one port speak TLS or plain,
AMQP or HTTP; http_driver.py keeps HTTP within its limits, heads of requests by request_head.py, and websocket_driver.py
carries AMQP inside WebSocket messages; tls.py loads certificates, and development_certificate.py makes them;
listening_socket.py accepts connections. system_env.py is the real Env, with the clocks of monotonic.py and
system_time.py, which service_clock.py may be ahead of, its threads in offload_pool.py and the end of a turn in
loop_turn.py; loop_watch.py says how late the loop is, and garbage_collector.py holds collections short; tasks.py owns
every asyncio task; open_connections.py ends all connections together. peer_address.py names a peer,
transport_reading.py says whether it is read, descriptor_limit.py raises a limit of the system. broker_driver.py carries
broker commands over a byte stream, unix_socket.py listens and connects for it between processes, passed_connections.py
hands peers from one process to another, and watched_process.py starts processes and sees them end. No file here decides
anything about hubs, rights or stores.
"""
