"""Typed readers for environment variables; only `settings.py` uses them.

A value that cannot be read stops the program with the variable's name and what was expected,
because a typo in a deployment should never turn into a silent default.
"""

import os
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from dotenv import load_dotenv
from dotenv.parser import parse_stream

ORIGIN = re.compile(r"https?://[^\s/?#]+")
HOST = re.compile(r"\*|[^\s/:\[\]*]+|\[[0-9a-fA-F:.]+\]")


def read_file(path: Path) -> None:
    """Set the variables of a .env file, unless they are set already.

    A line that cannot be read is an error. The library would skip it: a DATABASE_URL without its closing quote would be
    unset, and an empty database be started.
    """
    if not path.exists() or path.is_dir():
        return
    try:
        # Read once, because it may be a pipe.
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ImproperlyConfigured(f"{path} must be UTF-8 text.") from None
    for line in parse_stream(StringIO(content)):
        if line.error:
            raise ImproperlyConfigured(
                f"{path}, line {line.original.line}, must be NAME=value, with both quotes or none."
            )
    load_dotenv(stream=StringIO(content))


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def path(name: str, default: str) -> Path:
    """A path that may begin with ~: nobody replaces that in a .env file, and a directory of this name would be made."""
    try:
        return Path(text(name, default)).expanduser()
    except RuntimeError:
        raise ImproperlyConfigured(f"{name} begins with ~, and that home directory is not known.") from None


def words(name: str, default: list[str]) -> list[str]:
    return [word.strip() for word in text(name).split(",") if word.strip()] or default


def hosts(name: str, default: list[str]) -> list[str]:
    """Host names alone: with a scheme, port or path none would match, and every request would be refused."""
    found = words(name, default)
    for host in found:
        if not HOST.fullmatch(host):
            raise ImproperlyConfigured(
                f"{name} must be names or addresses alone, such as memory.example.com, .example.com or [::1], "
                f"without https://, port or path, not {host!r}."
            )
    return found


def origins(name: str) -> list[str]:
    """Origins as browsers send them with a form: anything else would match none, and every form would be refused."""
    found = words(name, [])
    for origin in found:
        if not ORIGIN.fullmatch(origin):
            raise ImproperlyConfigured(
                f"{name} must be origins such as https://memory.example.com or https://*.example.com:8443, "
                f"without a path, not {origin!r}."
            )
    return found


def address(name: str) -> str:
    """The URL of an API. If it has no https:// every call fails, as if the network were down."""
    found = text(name)
    try:
        url = urlsplit(found)
        is_url = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0 and len(found.split()) == 1
    except ValueError:
        is_url = False
    if found and not is_url:
        raise ImproperlyConfigured(
            f"{name} must be an address such as https://api.example.com/v1 or http://127.0.0.1:8080/v1."
        )
    return found


def key(name: str) -> str:
    """Of an API, to be sent in a header. One with a quote or a blank pasted along is never sent at all."""
    found = text(name)
    if not found.isascii() or not found.isprintable() or len(found.split()) > 1:
        raise ImproperlyConfigured(f"{name} must be a key alone: ASCII characters without blanks or line breaks.")
    return found


def number(name: str, default: int, *, low: int, high: int) -> int:
    raw = text(name)
    if not raw:
        return default
    if not raw.isdecimal() or not low <= int(raw) <= high:
        raise ImproperlyConfigured(f"{name} must be a whole number from {low} to {high}, not {raw!r}.")
    return int(raw)


def flag(name: str, default: bool) -> bool:
    raw = text(name).lower()
    if not raw:
        return default
    if raw not in {"1", "true", "yes", "on", "0", "false", "no", "off"}:
        raise ImproperlyConfigured(f"{name} must be yes or no, not {raw!r}.")
    return raw in {"1", "true", "yes", "on"}


def one_of(name: str, default: str, allowed: list[str]) -> str:
    """One of the allowed words, in upper or lower case."""
    raw = text(name, default).upper()
    if raw not in allowed:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(allowed)}, not {raw!r}.")
    return raw


def fernet_keys(name: str, default: Callable[[], str]) -> list[str]:
    keys = words(name, []) or [default()]
    for position, key in enumerate(keys, start=1):
        try:
            Fernet(key)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name} must be Fernet keys, each 32 bytes in URL-safe base64; number {position} is not. Make one "
                'with python -c "import os, base64; print(base64.urlsafe_b64encode(os.urandom(32)).decode())"'
            ) from None
    return keys


def postgres_url(name: str) -> dict[str, Any] | None:
    """`postgres://user:password@host:port/database?sslmode=…` as Django's connection settings."""
    raw = text(name)
    if not raw:
        return None
    wrong = ImproperlyConfigured(
        f"{name} must look like postgres://user:password@host:5432/database, with %2F for a slash in the password."
    )
    try:
        url = urlsplit(raw)
        port = url.port
    except ValueError:
        # Its own message may quote the password: one with a slash is taken for a port.
        raise wrong from None
    database = unquote(url.path.lstrip("/"))
    if url.scheme not in {"postgres", "postgresql"} or not database:
        raise wrong
    options: dict[str, object] = dict(parse_qsl(url.query))
    return {
        "NAME": database,
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": options.pop("host", None) or unquote(url.hostname or ""),
        "PORT": str(port or options.pop("port", "")),
        "OPTIONS": options,
    }
