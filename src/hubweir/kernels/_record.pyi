"""Types of the compiled half that makes and reads records: those of its twin, which stand once."""

from hubweir.kernels.pure_batches import crc32c as crc32c
from hubweir.kernels.pure_batches import find_offset as find_offset
from hubweir.kernels.pure_batches import find_record as find_record
from hubweir.kernels.pure_batches import scan_batches as scan_batches
from hubweir.kernels.pure_batches import scan_records as scan_records
from hubweir.kernels.pure_events import open_events as open_events
from hubweir.kernels.pure_ingest import count_events as count_events
from hubweir.kernels.pure_ingest import find_key as find_key
from hubweir.kernels.pure_ingest import ingest as ingest
