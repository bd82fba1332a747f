"""Raises the limit of files and sockets that this process may have open, as far as the system lets it.

Shells start programs with a soft limit of about a thousand, for the sake of programs that use select(2). A broker
needs a descriptor for every connection and some for its logs; the hard limit is the system's real word.
"""

from __future__ import annotations

import logging
import resource
from contextlib import suppress

logger = logging.getLogger(__name__)

# The open files of the logs, the service's own, and a few hundred connections. With less, sends fail for no reason.
LEAST_USEFUL = 1_024


def raise_descriptor_limit() -> int:
    """Raise the soft limit to the hard one and return it; a warning when that is still little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems name a hard limit that they do not grant; then the soft one stays.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < LEAST_USEFUL:
        logger.warning("only %d files and connections may be open at once; raise the limit (ulimit -n)", soft)
    return soft
