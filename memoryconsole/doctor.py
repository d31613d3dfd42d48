"""The checks of `manage.py doctor`, each after those it depends on."""

import os
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection

from memoryconsole import embedded, health
from memoryconsole.embedded.home import abandoned
from memoryconsole.encryption import count_unreadable
from memoryconsole.health import Finding

OLDEST_PYTHON = (3, 11)
OLDEST_POSTGRES = 15
OLDEST_PGVECTOR = (0, 8)
LOOPBACK = {"127.0.0.1", "localhost", "::1", "[::1]"}
LITTLE_SPACE = 2 * 1024**3
NO_SPACE = 200 * 1024**2
# As long as what 128 bits take in hexadecimal digits.
SHORTEST_SECRET = 32
FEWEST_CHARACTERS = 10


def examine() -> Iterator[Finding]:
    yield python()
    yield data_directory()
    yield secrets()
    yield disk_space()
    yield allowed_hosts()
    yield provider()
    yield mcp()
    yield from database()
    if homes := abandoned():
        yield Finding(
            "abandoned data",
            "info",
            f"Databases whose data directories are gone: {len(homes):,}, the first of them {homes[0]}.",
            "Remove what you are sure nobody needs.",
        )


def python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding("python", "broken", f"This is Python {version}.", "Install Python 3.11 or newer.")
    return Finding("python", "ok", f"Python {version}")


def data_directory() -> Finding:
    directory = settings.DATA_DIR
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        advice = "Make it writable for the user who runs the console, or set DATA_DIR."
        return Finding("data directory", "broken", f"{directory} is not writable.", advice)
    if directory.stat().st_mode & stat.S_IWOTH:
        return Finding("data directory", "broken", f"Anyone may write to {directory}.", f"Run `chmod o-w {directory}`.")
    return Finding("data directory", "ok", str(directory))


def secrets() -> Finding:
    directory = settings.DATA_DIR / "secrets"
    loose = [path for path in _with_children(directory) if path.stat().st_mode & 0o077]
    if loose:
        advice = f"Run `chmod -R go= {directory}`, and make new secrets if others could log in to this machine."
        return Finding("secrets", "broken", f"Others may read {loose[0]}.", advice)
    secret = settings.SECRET_KEY
    if len(secret) < SHORTEST_SECRET or len(set(secret)) < FEWEST_CHARACTERS:
        advice = "Set a random one of 50 characters, or none: then one is made. Everybody signs in again afterwards."
        return Finding("secrets", "warning", "SECRET_KEY can be guessed, and with it anybody's session.", advice)
    return Finding("secrets", "ok", "Only their owner may read them.")


def disk_space() -> Finding:
    places = [settings.DATA_DIR, settings.DATA_DIR / "postgres"]
    free = min(shutil.disk_usage(place).free for place in places if place.exists())
    message = f"{free / 1024**3:.1f} GB free"
    advice = "Free some space: PostgreSQL stops accepting writes when the disk is full."
    if free < NO_SPACE:
        return Finding("disk space", "broken", message, advice)
    if free < LITTLE_SPACE:
        return Finding("disk space", "warning", message, advice)
    return Finding("disk space", "ok", message)


def allowed_hosts() -> Finding:
    host, allowed = settings.HOST, settings.ALLOWED_HOSTS
    names = ", ".join(allowed)
    if host in LOOPBACK or "*" in allowed or set(allowed) - LOOPBACK:
        return Finding("allowed hosts", "ok", names)
    return Finding(
        "allowed hosts",
        "warning",
        f"HOST is {host}, but only {names} are accepted as names of this server.",
        "Put the names and addresses people use into ALLOWED_HOSTS, separated by commas.",
    )


def provider() -> Finding:
    azure = {
        "AZURE_OPENAI_ENDPOINT": settings.AZURE_OPENAI_ENDPOINT,
        "AZURE_OPENAI_API_KEY": settings.AZURE_OPENAI_API_KEY,
        "AZURE_OPENAI_EMBEDDING_DEPLOYMENT": settings.AZURE_OPENAI_EMBEDDING_DEPLOYMENT,
    }
    missing = [name for name, value in azure.items() if not value]
    if not missing:
        return Finding("embeddings", "ok", "Azure OpenAI is the server's default.")
    if len(missing) < len(azure):
        advice = f"Set {', '.join(missing)} as well, or none of them."
        return Finding("embeddings", "warning", "Azure OpenAI is only half set up.", advice)
    if settings.OPENAI_API_KEY:
        return Finding("embeddings", "ok", "OpenAI is the server's default.")
    return Finding(
        "embeddings",
        "info",
        "The server has no OpenAI or Azure key: instances without one of their own find words, but learn nothing.",
        "Set OPENAI_API_KEY or the AZURE_OPENAI_ variables, or give an instance its key on its settings page. For "
        "search alone, an instance can use the offline embedder.",
    )


def mcp() -> Finding:
    """`up` opens a port by itself. MCP_PORT is set where web server and MCP server are started separately."""
    if settings.MCP_PORT and not _is_open(settings.MCP_PORT):
        advice = "Start `manage.py mcpserver` or `manage.py up`."
        return Finding("mcp", "warning", f"Nothing listens on MCP_PORT {settings.MCP_PORT}: /mcp answers 503.", advice)
    return Finding("mcp", "ok", "Agents connect to /mcp with a key made for one instance.")


def database() -> Iterator[Finding]:
    started = settings.EMBEDDED_POSTGRES and not _is_running()
    if problem := health.connection_problem():
        yield health.unreachable(problem)
        return
    where = f"embedded, socket in {embedded.ensure_running().host}" if settings.EMBEDDED_POSTGRES else "DATABASE_URL"
    if started:
        where += "; it was not running and has been started for this check"
    yield postgres_version(where)
    yield pgvector_version()
    yield health.text()
    schema = health.migrations()
    yield schema
    if schema.level == "ok":
        yield stored_keys()
    yield health.worker()


def postgres_version(where: str) -> Finding:
    major, minor = connection.get_database_version()
    version = f"{major}.{minor}"
    if major < OLDEST_POSTGRES:
        advice = f"Use PostgreSQL {OLDEST_POSTGRES} or newer."
        return Finding("database", "broken", f"PostgreSQL {version} is too old ({where}).", advice)
    return Finding("database", "ok", f"PostgreSQL {version} ({where})")


def pgvector_version() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'"
        )
        row = cursor.fetchone()
    if row is None:
        return Finding("pgvector", "broken", "The server has no pgvector.", "Install pgvector 0.8 or newer on it.")
    if tuple(int(part) for part in row[0].split(".")[:2]) < OLDEST_PGVECTOR:
        advice = "Install a newer one on the server, then run `ALTER EXTENSION vector UPDATE`."
        return Finding("pgvector", "broken", f"pgvector {row[0]} is too old.", advice)
    return Finding("pgvector", "ok", f"pgvector {row[0]}")


def stored_keys() -> Finding:
    if unreadable := count_unreadable():
        return Finding(
            "stored keys",
            "broken",
            f"Stored OpenAI keys that cannot be read: {unreadable:,}. The Instances page shows whose.",
            "Put the encryption key they were stored with into FIELD_ENCRYPTION_KEYS, or enter them again.",
        )
    return Finding("stored keys", "ok", "All stored OpenAI keys can be read.")


def _is_running() -> bool:
    try:
        return embedded.server().is_running()
    except embedded.EmbeddedPostgresError:
        return False


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def _with_children(directory: Path) -> list[Path]:
    return [directory, *directory.iterdir()] if directory.is_dir() else []
