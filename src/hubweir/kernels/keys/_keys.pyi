"""Types of the compiled half that finds where deliveries go: those of its twins, which stand once."""

from hubweir.kernels.keys.keys import find_keys as find_keys
from hubweir.kernels.keys.keys import group_deliveries as group_deliveries
from hubweir.kernels.keys.keys import hash_key as hash_key
from hubweir.kernels.keys.message_keys import find_message_keys as find_message_keys
