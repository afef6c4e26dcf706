"""A headless Chromium for tests of pages, driven over a pair of pipes by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from tests.support.host import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
    "--hide-scrollbars", "about:blank",
)  # fmt: skip
_KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39}


class Browser:
    """One browser with one tab, a new one for each page. A context manager.

    Args:
        profile: an empty folder.

    Attributes:
        profile: as given.
        requests: the addresses that pages have requested, the pages themselves included.
        problems: messages of exceptions, and of the content security policy.
    """

    def __init__(self, profile: Path) -> None:
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        command = [CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}"]
        # The protocol comes and goes by the descriptors 3 and 4, which a shell puts there.
        script = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, "-", *command],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self.profile = profile
        self._buffer = b""
        self._number = 0
        self._session = self._target = ""
        self._loaded = False
        self.requests: list[str] = []
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._commands)  # the browser ends
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            os.close(self._answers)

    def send(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command; returns its result. Raises AssertionError for an error."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            pass
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def open(
        self, page: Path | str, fragment: str = "", *, width: int = 1440, height: int = 900, dark: bool = False
    ) -> None:
        """Load a page, a file or an address, in a new tab, and wait until all of it has been read."""
        self._session = ""
        if self._target:
            self.send("Target.closeTarget", targetId=self._target)
        self._target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        address = page if isinstance(page, str) else f"file://{page}"
        self.load(address + (f"#{fragment}" if fragment else ""))

    def load(self, address: str) -> None:
        """Load an address in the same tab, and wait until all of it has been read."""
        self._loaded = False
        self.send("Page.navigate", url=address)
        while not self._loaded:
            self._receive()

    def run(self, expression: str) -> Any:
        """Evaluate JavaScript in the page, and wait for what it promises; returns the value."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        """Return the texts of the elements that a selector finds."""
        found: list[str] = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)")
        return found

    def click(self, selector: str, number: int = 0) -> None:
        """Click the middle of an element."""
        box = self.run(
            f"{{ const e = document.querySelectorAll({json.dumps(selector)})[{number}]; "
            "e.scrollIntoView({ block: 'nearest' }); const b = e.getBoundingClientRect(); "
            "[b.left + b.width / 2, b.top + b.height / 2] }"
        )
        self.drag(box, box)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the pointer at one place, and release it at another."""
        for kind, (x, y) in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
            button = {"button": "left", "buttons": 1, "clickCount": 1}
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def press(self, *keys: str) -> None:
        """Press keys: names as "Enter", or characters."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            code = {"windowsVirtualKeyCode": _KEYS[key]} if key in _KEYS else {}
            self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def wait(self, condition: str) -> None:
        """Wait until an expression is true, frame by frame."""
        look = f"const look = () => ({condition}) ? done() : requestAnimationFrame(look)"
        self.run(f"new Promise((done) => {{ {look}; look(); }})")

    def screenshot(self, path: Path) -> None:
        """Save what is seen as a PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._answers], [], [], PATIENCE_S)[0], "the browser does not respond"
            data = os.read(self._answers, 1 << 20)
            assert data, "the browser has ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self._note(message)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        method, parameters = event["method"], event["params"]
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.problems.append(parameters["entry"]["text"])
