"""Rights of peers: shared access signatures, authorization rules, claims. Floor: domain.

Start with shared_access_signature.py, how a token is made and checked; then resource_scope.py, what a token covers, and
claims.py, what one connection has proved so far. authorization_rule.py holds the named keys. json_web_token.py is the
second kind of token, with its keys in json_web_key.py and their file in issuer_keys.py. Both kinds prove a
verified_token.py, or are refused in the words of refusal.py. What SASL proves is in plain.py and external.py, kept as a
connection_grant.py. Who signed in to the portal, failed or signed out is sign_in_ledger.py on lockout.py. base64url.py
reads tokens strictly, high_water_time.py is a clock that never runs back. Time is passed in; nothing here tells a
caller more than the service's own texts do.

The page is docs/shared_access_signature.md.
"""
