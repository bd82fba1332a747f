"""Write transfer frames: one message over as many frames as it needs, compiled. The twin is transfers.py."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from hubweir.kernels.buffers.bytes cimport store16, store32

cdef struct Room:
    # A SendRoom of contract.py.
    int64_t deliveries
    int64_t frames
    int64_t bytes


cdef struct Frames:
    # The end of out while frames are appended, and the frame that is being filled.
    uint8_t* out
    int64_t begun
    int64_t used
    int64_t capacity
    int64_t needed
    int64_t events
    int64_t deliveries
    int64_t frames
    uint32_t first_id      # of the call's first delivery
    Room room              # what the call may write
    int64_t piece          # payload bytes of a full frame
    int64_t left           # bytes of the message that stand in frames not begun yet
    int64_t open           # bytes that the current frame still takes
    int prefix_size
    int id_at              # where in the prefix the delivery's id stands; its tag stands behind it
    uint8_t prefix[52]     # header and performative of the current delivery's frames


cdef inline void begin_frame(Frames* frames) noexcept nogil:
    cdef uint8_t* to = frames.out + frames.used
    cdef int64_t payload = min(frames.left, frames.piece)
    frames.left -= payload
    frames.open = payload
    memcpy(to, frames.prefix, <size_t>frames.prefix_size)
    store32(to, <uint32_t>(frames.prefix_size + payload))
    to[frames.prefix_size - 6] = 0x41 if frames.left > 0 else 0x42
    frames.used += frames.prefix_size


cdef inline void put(Frames* frames, const uint8_t* source, int64_t size) noexcept nogil:
    """Append bytes of the message, going over to new frames where one is full."""
    while size > frames.open:
        memcpy(frames.out + frames.used, source, <size_t>frames.open)
        frames.used += frames.open
        source += frames.open
        size -= frames.open
        begin_frame(frames)
    memcpy(frames.out + frames.used, source, <size_t>size)
    frames.used += size
    frames.open -= size


cdef inline void write_prefix(
    Frames* frames, int64_t channel, int64_t handle, bint settled, uint32_t message_format, int tag_size=4
) noexcept nogil:
    """Prepare what all frames of the call share; the size, the delivery's id and tag, and `more` are filled in later.

    tag_size: 4, or 16 where message_format is 0.
    """
    cdef uint8_t* to = frames.prefix
    cdef int at = 14
    store32(to, 0)
    to[4] = 2
    to[5] = 0
    store16(to + 6, <uint32_t>channel)
    memcpy(to + 8, b"\x00\x53\x14\xc0\x00\x0b", 6)
    if handle <= 0xFF:
        to[at] = 0x52
        to[at + 1] = <uint8_t>handle
        at += 2
    else:
        to[at] = 0x70
        store32(to + at + 1, <uint32_t>handle)
        at += 5
    frames.id_at = at + 1
    memcpy(to + at, b"\x70....\xa0", 6)  # the delivery's id, then its tag
    to[at + 6] = <uint8_t>tag_size
    at += 7 + tag_size
    if message_format == 0:
        to[at] = 0x43
        at += 1
    else:
        to[at] = 0x70
        store32(to + at + 1, message_format)
        at += 5
    # settled, more, rcv-settle-mode and state null, then resume, aborted and batchable false.
    memcpy(to + at, b"\x42\x42\x40\x40\x42\x42\x42", 7)
    if settled:
        to[at] = 0x41
    frames.prefix_size = at + 7
    to[12] = <uint8_t>(frames.prefix_size - 13)


cdef inline bint has_room(Frames* frames, int64_t count, int64_t size) noexcept nogil:
    """Whether a delivery of so many frames and bytes may be written; a call's first one always may."""
    return frames.deliveries == 0 or (
        frames.frames + count <= frames.room.frames and frames.used - frames.begun + size <= frames.room.bytes
    )


cdef inline void name_delivery(Frames* frames) noexcept nogil:
    """Make the prefix that of the next delivery: its id, which is its tag, too."""
    cdef uint32_t delivery_id = frames.first_id + <uint32_t>frames.deliveries
    store32(frames.prefix + frames.id_at, delivery_id)
    store32(frames.prefix + frames.id_at + 6, delivery_id)
