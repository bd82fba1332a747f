"""Errors of a pipeline, for callers to tell apart. Each text is one line."""

from __future__ import annotations

from hubweir.errors import HubweirError


class IllegalDescription(HubweirError):
    """A description with a key or a value that cannot be; the text names file, key and what is allowed."""


class CheckpointInUse(HubweirError):
    """Another run has the checkpoint now; the text names its process."""


class PipelineFailed(HubweirError):
    """A pipeline that ran has ended with an error; its checkpoint stays, so it may be run again."""
