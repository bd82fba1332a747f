"""The machine's own Chromium, driven without a screen, and what it must never do on a page of the portal.

Nothing is downloaded: Playwright's package brings the driver, the browser is Debian's or whichever is installed.
axe.min.js is axe-core 4.14.1 as its npm package has it (Mozilla Public License 2.0, axe-LICENSE.txt).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response, sync_playwright

AXE = Path(__file__).with_name("axe.min.js")
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
WAIT_MS = 30_000
HEIGHT = 800  # of a window, in pixels
# Of the four grades that axe gives.
SERIOUS = ("serious", "critical")


def chromium() -> str | None:
    """Where the browser is; None: there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def running_chromium(executable: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Root has no sandbox of its own to give.
        arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=executable, args=arguments, timeout=2 * WAIT_MS)
        try:
            yield browser
        finally:
            browser.close()


class Person:
    """Somebody at a browser. offences: console errors, requests to another host, answers that are faults of ours."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        """context: of a browser, with nobody else in it; a person who leaves it leaves no cookies."""
        self.origin = origin
        self.offences: list[str] = []
        self.context = context
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.offences.append(f"script: {error}"))
        self.page.on("request", self._request)
        self.page.on("response", self._response)
        self.page.on("dialog", lambda dialog: dialog.accept())

    def open(self, path: str) -> Page:
        """A page, by its path below `/portal`."""
        self.page.goto(f"{self.origin}/portal/{path}".rstrip("/"))
        return self.page

    def sign_in(self, key: str, rule: str = "RootManageSharedAccessKey") -> Page:
        self.open("sign-in")
        self.page.fill("#rule", rule)
        self.page.fill("#secret", key)
        self.press("Sign in")
        return self.page

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def see(self, scheme: str, width: int) -> None:
        """Look at pages from now on, and at the one that is open, in a window so wide that is light or dark.

        Nothing moves there: a colour that fades into another one would have a contrast of its own meanwhile.
        """
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        self.page.set_viewport_size({"width": width, "height": HEIGHT})

    def violations(self) -> list[str]:
        """What axe-core finds serious on the page that is open."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text())
        # It tells of one place where a rule is kept, and of all where it is broken.
        found: dict[str, Any] = self.page.evaluate("axe.run({resultTypes: ['violations']})")
        return [
            f"{self.page.url}: {each['id']}: {each['help']}: {each['nodes'][0]['html'][:160]}"
            for each in found["violations"]
            if each["impact"] in SERIOUS
        ]

    def overflow(self) -> int:
        """How many pixels of the page lie outside the window, to the right."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return width

    def leave(self) -> None:
        # A page that is closed while it is being left for another one may stay open, and its end be waited for without
        # limit (chromium issue 536385539). An empty page that has come is left for nothing.
        self.page.goto("about:blank")
        self.page.close()
        self.context.clear_cookies()

    def _console(self, message: ConsoleMessage) -> None:
        # That an answer was refused is no fault of the page: _response says which must not be.
        if message.type in ("error", "warning") and "status of 4" not in message.text:
            self.offences.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        asked = urlsplit(request.url)
        if asked.scheme != "data" and f"{asked.scheme}://{asked.netloc}" != self.origin:
            self.offences.append(f"request: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self.offences.append(f"answer: {response.status} {response.url}")
