"""The ground of all rooms: loads and stores, borrowed buffers and their checks, a buffer that grows, CRC-32C."""
