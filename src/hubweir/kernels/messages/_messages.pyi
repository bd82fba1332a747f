"""Types of the compiled half that makes records and opens messages: those of its twins, which stand once."""

from hubweir.kernels.messages.check_messages import check_messages as check_messages
from hubweir.kernels.messages.ingest import count_events as count_events
from hubweir.kernels.messages.ingest import find_key as find_key
from hubweir.kernels.messages.ingest import ingest as ingest
from hubweir.kernels.messages.open_events import open_events as open_events
