"""Data flows down: interfaces import the domain, never the other way round, and nobody imports an interface."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("memoryconsole", "accounts", "instances", "conversations", "memories")
INTERFACES = ("views", "api", "forms", "management", "cli", "mcp", "urls", "jobs")
# What all views, endpoints or commands are built on.
SHARED_BY_INTERFACES = {
    "accounts.api_authentication",
    "accounts.pages",
    "memoryconsole.api",
    "memoryconsole.commands",
    "memoryconsole.endpoints",
}


def modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "migrations" not in parts:
                found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def is_interface(module: str) -> bool:
    parts = module.split(".")
    is_ours = parts[0] in PACKAGES and len(parts) > 1
    return is_ours and (parts[1].split("_")[0] in INTERFACES or parts[1].endswith(("_views", "_urls")))


MODULES = modules()


@pytest.mark.parametrize("module", sorted(name for name in MODULES if not is_interface(name)))
def test_the_domain_knows_no_interface(module: str) -> None:
    interfaces = {name for name in imports(MODULES[module]) if is_interface(name)}
    if module not in SHARED_BY_INTERFACES:
        assert {name for name in interfaces if not {name, name.rsplit(".", 1)[0]} & SHARED_BY_INTERFACES} == set()


# Modules that put the parts together.
TOGETHER = {"memoryconsole.urls", "memoryconsole.api_urls", "memoryconsole.first_start"}


@pytest.mark.parametrize("module", sorted(name for name in MODULES if name.startswith("memoryconsole.")))
def test_the_project_room_knows_nothing_of_the_domain_but_who_is_asking(module: str) -> None:
    domain = {name for name in imports(MODULES[module]) if name.split(".")[0] in PACKAGES[1:]}
    if module not in TOGETHER:
        assert {name for name in domain if not name.startswith("accounts.access")} == set()


@pytest.mark.parametrize("module", ["memoryconsole.supervisor", "memoryconsole.web"])
def test_processes_that_only_watch_or_listen_load_none_of_the_apps(module: str) -> None:
    loaded = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    names = subprocess.run(
        [sys.executable, "-c", loaded], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert {"memoryconsole", "granian" if module.endswith("web") else "psycopg"} <= set(names)
    assert not {"rest_framework", "pydantic", "procrastinate", *PACKAGES[1:]} & set(names)
