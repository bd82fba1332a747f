"""Types of the compiled half that reads and writes frames: those of its twin, which stand once."""

from hubweir.kernels.frames.deliver import deliver as deliver
from hubweir.kernels.frames.deliver_batches import deliver_batches as deliver_batches
from hubweir.kernels.frames.frames import collect_deliveries as collect_deliveries
from hubweir.kernels.frames.frames import scan_frames as scan_frames
