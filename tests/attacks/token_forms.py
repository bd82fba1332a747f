"""Attacks 1 to 22: a token's form and its expiry. Each text is refused at both doors; the good one opens both."""

from __future__ import annotations

import base64
import hashlib
import time
from urllib.parse import quote

from hubweir.namespace.rights import Rights
from tests.attacks.table import attack
from tests.attacks.target import KEY, LATE, REFUSED, Target, build, resource

GOOD = build()
SIGNATURE = GOOD.split("sig=")[1].split("&")[0]
RAW = base64.b64decode(SIGNATURE.replace("%2F", "/").replace("%2B", "+").replace("%3D", "="))
SIGNED = f"{resource('hub1')}\n{LATE}".encode()


def with_signature(signature: str) -> str:
    return GOOD.replace(SIGNATURE, signature)


def encoded(data: bytes) -> str:
    return quote(base64.b64encode(data).decode(), safe="")


def spare_bits() -> str:
    """The same 32 bytes by another text: the last character before the padding holds two bits that mean nothing."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    text = base64.b64encode(RAW).decode()
    return quote(text[:42] + alphabet[alphabet.index(text[42]) + 1] + "=", safe="")


FORMS = {
    (1, "no signature"): GOOD.replace(f"sig={SIGNATURE}&", ""),
    (2, "empty signature"): with_signature(""),
    (3, "a byte short"): with_signature(encoded(RAW[:31])),
    (5, "hexadecimal digest"): with_signature(RAW.hex()),
    (6, "junk in base64"): with_signature(SIGNATURE[:4] + "*" + SIGNATURE[4:]),
    (6, "newline in base64"): with_signature(SIGNATURE[:4] + "%0A" + SIGNATURE[4:]),
    (6, "no padding"): with_signature(SIGNATURE.removesuffix("%3D")),
    (6, "padding twice"): with_signature(SIGNATURE + "%3D"),
    (6, "spare bits"): with_signature(spare_bits()),
    (8, "semicolons"): GOOD.replace("&", ";"),
    (8, "unknown field"): GOOD + "&x=1",
    (9, "other scheme word"): GOOD.replace("SharedAccessSignature", "SharedAccessSignatures"),
    (9, "no scheme word"): GOOD.removeprefix("SharedAccessSignature "),
    (9, "double space"): GOOD.replace(" ", "  "),
    (10, "10,000 fields"): GOOD + "&x=1" * 900,
    (13, "plain SHA-1"): with_signature(encoded(hashlib.sha1(KEY.encode() + SIGNED).digest())),
    (13, "plain MD5"): with_signature(encoded(hashlib.md5(KEY.encode() + SIGNED).digest())),
    (17, "no expiry"): GOOD.replace(f"&se={LATE}", ""),
    (17, "empty expiry"): build(se=""),
    (18, "negative expiry"): build(se="-1"),
    (19, "underscores"): build(se="2_000_000_000"),
    (19, "leading space"): build(se=" 2000000000"),
    (19, "plus sign"): build(se="+2000000000"),
    (19, "hexadecimal"): build(se="0x77359400"),
    (19, "Arabic digits"): build(se="\u0662" + "\u0660" * 9),
    (20, "2^63"): build(se=str(2**63)),
    (20, "2^64"): build(se=str(2**64)),
    (20, "400 digits"): build(se="9" * 400),
    (21, "float"): build(se="2000000000.0"),
    (21, "NaN"): build(se="NaN"),
    (21, "inf"): build(se="inf"),
    (22, "milliseconds"): build(se="2000000000000"),
    (27, "doubled slash"): build("sb%3A%2F%2Flocalhost%2F%2Fhub1"),
    (30, "user information"): build("sb%3A%2F%2Fme%40localhost%2Fhub1"),
    (30, "trailing dot of the host"): build("sb%3A%2F%2Flocalhost.%2Fhub1"),
    (30, "port that is no number"): build("sb%3A%2F%2Flocalhost%3A80x%2Fhub1"),
    (31, "query"): build("sb%3A%2F%2Flocalhost%2Fhub1%3Fa%3D1"),
    (31, "fragment"): build("sb%3A%2F%2Flocalhost%2Fhub1%23a"),
    (32, "dot"): build("sb%3A%2F%2Flocalhost%2F.%2Fhub1"),
    (32, "dot dot"): build("sb%3A%2F%2Flocalhost%2Fhub10%2F..%2Fhub1"),
    (33, "encoded dots"): build("sb://localhost/hub10/%2e%2e/hub1"),
    (33, "encoded backslash"): build("sb://localhost/hub10%5chub1"),
    (34, "encoded twice"): build(quote(resource("hub1"), safe="")),
    (35, "overlong slash"): build("sb%3A%2F%2Flocalhost%C0%AFhub1"),
    (35, "invalid UTF-8"): build("sb%3A%2F%2Flocalhost%2Fhub1%FF"),
    (37, "empty resource"): build(""),
    (37, "slash alone"): build("%2F"),
    (37, "relative resource"): build("hub1"),
    (51, "empty rule name"): build(skn=""),
}
for field in ("sr", "sig", "se", "skn"):
    part = f"{field}=" + GOOD.split(f"{field}=")[1].split("&")[0]
    FORMS[7, f"{field} twice, in front"] = GOOD.replace(" ", f" {part}&", 1)
    FORMS[7, f"{field} twice, behind"] = f"{GOOD}&{part}"
    for label, character in (("NUL", "\0"), ("CR", "\r"), ("LF", "\n")):
        FORMS[11, f"{label} in {field}"] = GOOD.replace(part, part + character)

SIGNATURES = {
    (4, "first bit flipped"): with_signature(encoded(bytes([RAW[0] ^ 0x80]) + RAW[1:])),
    (12, "empty key"): build(key=b""),
    (13, "plain SHA-256"): with_signature(encoded(hashlib.sha256(KEY.encode() + SIGNED).digest())),
    (14, "signed the decoded URI"): build(signed=f"sb://localhost/hub1\n{LATE}"),
    (14, "signed with CRLF"): build(signed=f"{resource('hub1')}\r\n{LATE}"),
    (38, "signed lower, presented upper"): build(resource("HUB1"), signed=f"{resource('hub1')}\n{LATE}"),
    (48, "key of the hub's rule with the namespace's scope"): build(resource(""), skn="both", key="hub key"),
    (48, "key of the namespace's rule with the hub's scope"): build(skn="both", key="namespace key"),
    (51, "injection text"): build(skn="' OR 1=1 --"),
    (51, "encoded three times"): build(skn="RootManage%25252553haredAccessKey"),
    (52, "another namespace's key"): build(key="the key of another namespace"),
}


def put_form(number: int, name: str, token: str, *words: str, statuses: tuple[int, ...] = (401,)) -> None:
    attack(number, name)(lambda target: target.refuses(token, GOOD, *words, statuses=statuses))


for (number, name), token in FORMS.items():
    # What no HTTP header may hold is refused before it is a token.
    put_form(number, name, token, statuses=(401,) if token.isprintable() and token.isascii() else REFUSED)
for (number, name), token in SIGNATURES.items():
    put_form(number, name, token, "InvalidSignature:")


@attack(4, "each bit of the signature flipped")
def every_bit(target: Target) -> None:
    """At $cbs all of them, 64 a connection, which has handles enough for that; over HTTPS a few."""
    flipped = [
        with_signature(encoded(bytes(byte ^ (1 << bit % 8 if at == bit // 8 else 0) for at, byte in enumerate(RAW))))
        for bit in range(256)
    ]
    for some in (flipped[at : at + 64] for at in range(0, 256, 64)):
        with target.client() as client:
            assert {target.put(client, token)[1].partition(":")[0] for token in some} == {"InvalidSignature"}
            assert target.put(client, GOOD)[0] == 202
    assert {target.https(token) for token in flipped[::32]} == {401}
    assert target.https(GOOD) == 201


@attack(10, "1 MiB")
def one_mebibyte(target: Target) -> None:
    """Over the frame size: the peer is told so, and the next connection is served."""
    with target.client() as client:
        assert target.put(client, GOOD + "0" * 50_000)[1].startswith("Malformed")
        assert target.put(client, GOOD)[0] == 202
    assert target.https(GOOD + "0" * (1 << 20)) in (0, *REFUSED)
    assert target.https(GOOD) == 201


@attack(12, "the empty secondary key")
def empty_secondary(target: Target) -> None:
    with target.rule(Rights.SEND) as rule:
        good = build(skn=rule, key="its key")
        for key in (b"", b"0" * 44, b"None"):
            target.refuses(build(skn=rule, key=key), good, "InvalidSignature:")


@attack(15, "a key that looks like base64 is decoded first")
def decoded_key(target: Target) -> None:
    key = base64.b64encode(bytes(range(32))).decode()
    with target.rule(Rights.SEND) as rule:
        target.set_rule(rule, Rights.SEND, key=key)
        target.refuses(build(skn=rule, key=bytes(range(32))), build(skn=rule, key=key), "InvalidSignature:")


@attack(16, "a second ago")
def expired(target: Target) -> None:
    words = "ExpiredToken: The token is expired. Expiration time:"
    target.refuses(build(se=str(int(time.time()) - 1)), build(se=str(int(time.time()) + 60)), words)
    unsigned = build(se=str(int(time.time()) - 1), key="wrong")
    target.refuses(unsigned, GOOD, "InvalidSignature:")


@attack(18, "zero")
def zero(target: Target) -> None:
    target.refuses(build(se="0"), GOOD, "ExpiredToken:")


@attack(20, "2^31 and 2^32 are far times, and do not wrap")
def far(target: Target) -> None:
    for seconds in (2**31, 2**32):
        target.refuses(build(se=str(seconds), key="wrong"), build(se=str(seconds)), "InvalidSignature:")


@attack(51, "a rule's name in another case or encoded twice is that rule")
def odd_case(target: Target) -> None:
    with target.rule(Rights.SEND, name="Send Policy"):
        for skn in ("sEND%20pOLICY", "send%2Bpolicy"):
            target.refuses(build(skn=skn, key="wrong"), build(skn=skn, key="its key"), "InvalidSignature:")
