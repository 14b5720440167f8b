"""A real browser, driven over its debugging pipe; needs nothing but chromium."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """Return the path of a browser, None if there is none."""
    named = os.environ.get("AFTERSLIP_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with pages; use it in ``with``."""

    def __init__(self, path):
        self._profile = tempfile.mkdtemp(prefix="afterslip-browser-")
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        command = [
            path, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
            f"--user-data-dir={self._profile}",
        ]  # fmt: skip

        def keep_pipes():
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)

        # the browser expects its pipes at 3 and 4; make sure that ours lie higher
        to_read, to_write = _high(to_read), _high(to_write)
        self._process = subprocess.Popen(
            command,
            preexec_fn=keep_pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._numbers = itertools.count(1)
        self._answers = {}
        self.events = []
        self._arrived = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        rest = b""
        while True:
            try:
                block = os.read(self._from, 1 << 16)
            except OSError:
                return
            if not block:
                return
            *messages, rest = (rest + block).split(b"\0")
            with self._arrived:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self._answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self._arrived.notify_all()

    def call(self, method, session=None, seconds=30, **params):
        """Send a command and return its answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        with self._arrived:
            done = self._arrived.wait_for(lambda: number in self._answers, seconds)
            assert done, f"the browser does not answer {method}"
            answer = self._answers.pop(number)
        assert "error" not in answer, answer
        return answer["result"]

    def page(self, url, width=1280, height=900, dark=False, still=False):
        """Open a page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        return Page(self, target, session, url, width, height, dark, still)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        os.close(self._to)
        shutil.rmtree(self._profile, ignore_errors=True)


class Page:
    """One tab."""

    def __init__(self, browser, target, session, url, width, height, dark, still):
        self._browser, self._target, self._session = browser, target, session
        self.width = width
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {
            "name": "prefers-reduced-motion",
            "value": "reduce" if still else "no-preference",
        }
        self.call("Emulation.setEmulatedMedia", features=[scheme, motion])
        self.call("Page.navigate", url=url)
        self.until(
            "document.readyState === 'complete' && location.href !== 'about:blank'"
        )

    def call(self, method, **params):
        """Send a command to this tab."""
        return self._browser.call(method, self._session, **params)

    def run(self, script):
        """Return the value of a JavaScript expression."""
        answer = self.call(
            "Runtime.evaluate",
            expression=script, returnByValue=True, awaitPromise=True,
        )  # fmt: skip
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script, seconds=60):
        """Wait until an expression is true, and return its value."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}\n{self.text()}")

    def reload(self):
        """Load the page again; return once the new document is complete."""
        self.run("window.before = true; location.reload(); 0")
        # a document that has just begun has no body to look at
        self.until("!window.before && document.readyState === 'complete'")

    def close(self):
        """Close the tab."""
        self._browser.call("Target.closeTarget", targetId=self._target)

    def text(self):
        """Return the text that is shown."""
        return self.run("document.body.innerText")

    def shot(self, path):
        """Write a picture of the whole page."""
        height = self.run("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": self.width, "height": height, "scale": 1}
        data = self.call(
            "Page.captureScreenshot", clip=clip, captureBeyondViewport=True
        )
        Path(path).write_bytes(base64.b64decode(data["data"]))

    def saved(self, button, folder, name):
        """Press a button that saves a file; return its path once it is whole."""
        self._browser.call(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder)
        )
        path = Path(folder) / name
        press = "[...document.querySelectorAll('button')].find((b) => b.textContent"
        self.run(f"{press} === {button!r}).click()")
        deadline = time.monotonic() + 30
        while not path.is_file() or not path.stat().st_size:
            assert time.monotonic() < deadline, f"{button}: no file\n{self.text()}"
            time.sleep(0.05)
        return path

    def complaints(self):
        """Return the errors that the browser has noted for this tab."""
        kinds = {"Runtime.exceptionThrown", "Log.entryAdded"}
        return [
            event["params"]
            for event in self._browser.events
            if event.get("sessionId") == self._session
            and event["method"] in kinds
            and event["params"].get("entry", {}).get("level", "error") == "error"
        ]


def _high(descriptor):
    import fcntl

    fresh = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return fresh
