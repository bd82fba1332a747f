"""Write transfer frames in plain Python: one message over as many frames as it needs."""

from __future__ import annotations

from struct import pack

from hubweir.kernels.contract import TransferForm


def prefix_of(form: TransferForm, delivery_id: int, message_format: int, *, tag: bytes | None = None) -> bytes:
    """Return a frame's header and transfer performative, with size 0 and more=false. tag: the id when left out."""
    tag = pack(">I", delivery_id) if tag is None else tag
    fields = pack(">BB", 0x52, form.handle) if form.handle <= 0xFF else pack(">BI", 0x70, form.handle)
    fields += pack(">BIBB", 0x70, delivery_id, 0xA0, len(tag)) + tag
    fields += pack(">BI", 0x70, message_format) if message_format else b"\x43"
    # settled, more, rcv-settle-mode and state null, then resume, aborted and batchable false.
    fields += (b"\x41" if form.settled else b"\x42") + b"\x42\x40\x40\x42\x42\x42"
    return pack(">IBBH", 0, 2, 0, form.channel) + b"\x00\x53\x14\xc0" + pack(">BB", len(fields) + 1, 11) + fields


def frames_of(prefix: bytes, payload: bytes, max_frame_size: int) -> bytes:
    """Return the transfer frames of one delivery, which all repeat the prefix."""
    piece = max_frame_size - len(prefix)
    parts = [payload[at : at + piece] for at in range(0, len(payload), piece)] or [b""]
    return b"".join(_frame(prefix, part, index < len(parts) - 1) for index, part in enumerate(parts))


def _frame(prefix: bytes, payload: bytes, more: bool) -> bytes:
    """Return one transfer frame: the size filled in, and `more`, the sixth last field, when there is more."""
    size = pack(">I", len(prefix) + len(payload))
    return size + prefix[4:-6] + (b"\x41" if more else b"\x42") + prefix[-5:] + payload
