"""Types of the compiled half that reads and writes frames: those of its twin, which stand once."""

from hubweir.kernels.frames.deliver import deliver as deliver
from hubweir.kernels.frames.deliver_batches import deliver_batches as deliver_batches
from hubweir.kernels.frames.deliver_messages import deliver_messages as deliver_messages
from hubweir.kernels.frames.deliver_messages import encode_message as encode_message
from hubweir.kernels.frames.dispositions import collect_dispositions as collect_dispositions
from hubweir.kernels.frames.dispositions import merge_dispositions as merge_dispositions
from hubweir.kernels.frames.frames import collect_deliveries as collect_deliveries
from hubweir.kernels.frames.frames import scan_frames as scan_frames
