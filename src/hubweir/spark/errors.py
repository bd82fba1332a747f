"""What goes wrong between Spark and an event hub, for callers to tell apart. Each text is one line."""

from __future__ import annotations

from hubweir.errors import HubweirError


class IllegalOption(HubweirError):
    """An option that the source does not take, or a value that it cannot read; the text says what it takes."""


class IllegalOffset(HubweirError):
    """An offset of the checkpoint that this source did not write, or one that runs backwards."""


class DataLoss(HubweirError):
    """Events that were asked for are not there any more, and `failOnDataLoss` is true."""


class IllegalCapture(HubweirError):
    """A captured file that cannot be read, or a place that holds none."""
