"""Programs that stand for broker processes where it matters how they end. They are run by `python -c`."""

from __future__ import annotations

WAITS = "import time; time.sleep(60)"
# It makes the file when the signal does nothing any more.
# It takes some seconds to end. It has no handler: a signal that comes just before a sleep would be handled behind it.
ENDS_WITH = (
    "import signal, sys, time; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); open({ready!r}, 'x'); "
    "signal.sigtimedwait([signal.SIGTERM], 60); time.sleep({seconds}); sys.exit({code})"
)
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open({ready!r}, 'x'); time.sleep(60)"
