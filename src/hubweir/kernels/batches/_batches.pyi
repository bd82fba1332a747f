"""Types of the compiled half that walks and checks stored batches: those of its twins, which stand once."""

from hubweir.kernels.batches.batches import find_offset as find_offset
from hubweir.kernels.batches.batches import find_record as find_record
from hubweir.kernels.batches.batches import scan_records as scan_records
from hubweir.kernels.batches.follow_batches import follow_batches as follow_batches
from hubweir.kernels.batches.scan_batches import scan_batches as scan_batches
from hubweir.kernels.buffers.crc import crc32c as crc32c
