"""Errors between Spark and an event hub, for callers to tell apart. Each text is one line."""

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


class IllegalRow(HubweirError):
    """A row that cannot be written as an event; the text names it, counted from 1 in its task, and the limit."""


class ChangedRepeat(HubweirError):
    """A batch was repeated with other rows than the first time: going on would lose some, or store some twice."""


class NotExactlyOnce(HubweirError):
    """`exactlyOnce` is `require`, and this write cannot promise it; the text says why."""
