"""Types of the compiled half that reads and writes frames: those of its twin, which stand once."""

from hubweir.kernels.pure_deliver import deliver as deliver
from hubweir.kernels.pure_deliver_batches import deliver_batches as deliver_batches
from hubweir.kernels.pure_frames import collect_deliveries as collect_deliveries
from hubweir.kernels.pure_frames import scan_frames as scan_frames
