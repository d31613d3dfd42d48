"""Typed readers for environment variables; only `settings.py` uses them.

A value that cannot be read stops the program with the variable's name and what was expected,
because a typo in a deployment should never turn into a silent default.
"""

import os
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def words(name: str, default: list[str]) -> list[str]:
    return [word.strip() for word in text(name).split(",") if word.strip()] or default


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


def postgres_url(name: str) -> dict[str, Any] | None:
    """`postgres://user:password@host:port/database?sslmode=…` as Django's connection settings."""
    raw = text(name)
    if not raw:
        return None
    url = urlsplit(raw)
    database = unquote(url.path.lstrip("/"))
    if url.scheme not in {"postgres", "postgresql"} or not database:
        raise ImproperlyConfigured(f"{name} must look like postgres://user:password@host:5432/database.")
    options: dict[str, object] = dict(parse_qsl(url.query))
    return {
        "NAME": database,
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": options.pop("host", None) or unquote(url.hostname or ""),
        "PORT": str(url.port or options.pop("port", "")),
        "OPTIONS": options,
    }
