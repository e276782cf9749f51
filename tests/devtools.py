"""Browser: Debian's Chromium without a window, driven over a pipe by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import signal
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import require

_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions",
    "--force-device-scale-factor=1", "about:blank",
)  # fmt: skip
_KEYS = {"Enter": 13, "Escape": 27, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
_PATIENCE = 60  # seconds


class Browser:
    """One page at a time. What the page asks of the network, and what it says on the console, is kept."""

    def __init__(self, width: int = 1200, height: int = 900) -> None:
        command = require.command("chromium", package="chromium")
        self._home = tempfile.TemporaryDirectory(prefix="perfemu-browser-")
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, commands, 3), (os.POSIX_SPAWN_DUP2, answers, 4)]
        for stream in (1, 2):
            actions.append(
                (os.POSIX_SPAWN_OPEN, stream, f"{self._home.name}/said{stream}", os.O_WRONLY | os.O_CREAT, 0o600)
            )
        environment = {"HOME": self._home.name, "PATH": os.environ["PATH"]}
        arguments = [
            command,
            f"--user-data-dir={self._home.name}/profile",
            f"--window-size={width},{height}",
            *_OPTIONS,
        ]
        self._pid = os.posix_spawn(command, arguments, environment, file_actions=actions, setpgroup=0)
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.requests: list[str] = []
        self.errors: list[str] = []
        (target, *_) = [each for each in self._call("Target.getTargets")["targetInfos"] if each["type"] == "page"]
        attached = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        os.close(self._write)
        os.close(self._read)
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        for _ in range(50):  # its children may still write there
            try:
                self._home.cleanup()
                return
            except OSError:
                time.sleep(0.1)

    def open(self, page: Path, fragment: str = "") -> None:
        self._call("Page.navigate", url="about:blank")
        self.requests.clear()
        self._call("Page.navigate", url=f"{page.as_uri()}{'#' if fragment else ''}{fragment}")
        deadline = time.monotonic() + _PATIENCE
        while self.run("document.readyState") != "complete" or self.run("location.protocol") != "file:":
            assert time.monotonic() < deadline, "the page does not load"
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        """What the expression `script` gives in the page; it must not throw."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)}).textContent"))

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """A key by its DOM name, or a character."""
        text = {} if key in _KEYS and key != "Enter" else {"text": "\r" if key == "Enter" else key}
        code = {"windowsVirtualKeyCode": _KEYS[key]} if key in _KEYS else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def prefer(self, scheme: str) -> None:
        """Dark or light."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self) -> bytes:
        """The window as a PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._hear(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._read, 1 << 20)
            assert data, "the browser has ended: " + Path(self._home.name, "said2").read_text(errors="replace")[-2000:]
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    def _hear(self, message: dict[str, Any]) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
