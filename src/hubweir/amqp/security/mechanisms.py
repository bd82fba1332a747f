"""The SASL mechanisms that a server offers (part 5, section 5.3.3).

The order is the one in which Azure's service offers them; clients choose by name. ANONYMOUS and MSSBCBS mean that
rights come later, by tokens put on `$cbs`; MSSBCBS is the name under which one client asks for that. What a response
of PLAIN or EXTERNAL proves is auth/plain.py and auth/external.py.
"""

from __future__ import annotations

OFFERED = ("MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL")
