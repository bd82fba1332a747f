"""Types of the compiled kernels of Capture: those of their twins, which stand once."""

from hubweir.kernels.capture.capture_block import capture_block as capture_block
from hubweir.kernels.capture.read_capture import read_capture_block as read_capture_block
