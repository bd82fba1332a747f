"""Removes one blob by a request of its own, for accounts that are given by a shared access signature.

obstore removes blobs by a request for many (Blob Batch), which a signature of one container does not reach; and it does
not tell a missing right from any other failure. The account looks at rights before it looks for the blob, so removing a
name that nobody has tells whether blobs may be removed at all.
"""

from __future__ import annotations

from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

# Of the service's interface: any from 2015 on has this call as it is. (Delete Blob)
_VERSION = "2021-08-06"
# As often as any other request (blob_upload.py): what is not removed stays.
ATTEMPTS = 3


class DeleteRefused(OSError):
    """The account is away, or refuses. is_forbidden: the signature lacks the right to delete, or does not hold."""

    def __init__(self, text: str, *, is_forbidden: bool = False) -> None:
        super().__init__(text)
        self.is_forbidden = is_forbidden


def delete_blob(container_url: str, name: str, *, signature: str, timeout_s: float) -> None:
    """Remove a blob; does nothing when it is not there. Blocking. Raises DeleteRefused, without the signature."""
    for left in reversed(range(ATTEMPTS)):
        try:
            _delete(container_url, name, signature, timeout_s)
        except DeleteRefused as error:
            if error.is_forbidden or not left:
                raise
        else:
            return


def _delete(container_url: str, name: str, signature: str, timeout_s: float) -> None:
    request = Request(f"{container_url}/{quote(name)}?{signature}", method="DELETE")
    request.add_header("x-ms-version", _VERSION)
    try:
        with urlopen(request, timeout=timeout_s):
            pass
    except HTTPError as error:
        error.close()
        code = error.headers.get("x-ms-error-code") or error.reason
        # Also where the container is not there: who lets go of a name in it has nothing left to do.
        if error.code != 404:
            raise DeleteRefused(
                f"removing a blob: {error.code} ({code})", is_forbidden=error.code in (401, 403)
            ) from None
    except HTTPException as error:  # its text may hold the address
        raise DeleteRefused(f"removing a blob: {type(error).__name__}") from None
    except OSError as error:
        raise DeleteRefused(f"removing a blob: {error}") from None
