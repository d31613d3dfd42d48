"""A real console (`manage.py up`: PostgreSQL, web server, worker) and a real Chromium for all browser tests."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.conftest import discard
from tests.environment import ROOT

PASSWORD = "correct horse battery"
# htmx logs a request that a newer one has replaced; one that failed is also logged as sendError or responseError.
CANCELLED = ("htmx:afterRequest", "htmx:sendAbort")
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@dataclass(frozen=True)
class Console:
    url: str
    key: str
    environment: dict[str, str]

    def manage(self, *arguments: str) -> str:
        return manage(self.environment, *arguments)

    def api(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(f"{self.url}/api/v1{path}", method=method)
        request.add_header("Authorization", f"Bearer {self.key}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, json.dumps(body).encode() if body else None, timeout=20) as response:
            return json.load(response)

    def send(self, path: str, raw: bytes) -> Any:
        """A file as the body of a request."""
        request = urllib.request.Request(f"{self.url}/api/v1{path}", raw, method="POST")
        request.add_header("Authorization", f"Bearer {self.key}")
        request.add_header("Content-Type", "application/octet-stream")
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.load(response)

    def instance(self, slug: str, *memories: dict[str, Any]) -> str:
        """A fresh instance for one test."""
        self.api("POST", "/instances", {"slug": slug, "name": slug.replace("-", " ").capitalize()})
        if memories:
            self.api("POST", "/memories/bulk", {"instanceId": slug, "memories": memories})
        return slug


def manage(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture(scope="session")
def console() -> Iterator[Console]:
    data_dir = Path(tempfile.mkdtemp(prefix="memory-console-browser-"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    environment = os.environ | {"DATA_DIR": str(data_dir), "ADMIN_PASSWORD": PASSWORD, "PORT": str(port)}
    process = subprocess.Popen([sys.executable, str(ROOT / "manage.py"), "up"], env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/healthz", process)
        key = manage(environment, "createapikey", "--all-instances", "--name", "browser tests").strip()
        yield Console(url, key, environment)
    finally:
        process.terminate()
        process.wait(30)
        discard(data_dir)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the console stopped while it was starting"
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{url} did not answer within a minute")


def chromium() -> str:
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    assert path, "The browser tests need Chromium. Install it with: apt-get install chromium"
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def session_state(console: Console, browser: Browser) -> Any:
    """Sign in once; every test starts from these cookies."""
    context = browser.new_context(base_url=console.url)
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/memory*")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def page(console: Console, browser: Browser, session_state: Any) -> Iterator[Page]:
    """A page of somebody who is signed in. Errors on the console fail the test."""
    context = browser.new_context(
        base_url=console.url, storage_state=session_state, viewport={"width": 1280, "height": 900}
    )
    context.set_default_timeout(10_000)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert [error for error in errors if not error.startswith(CANCELLED)] == []
