"""What the documents name exists, and what exists is documented."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands
from django.urls import resolve
from django.urls.exceptions import Resolver404

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_and_commands_that_are_named_exist(document: Path) -> None:
    text = document.read_text()
    rooms = "|".join(path.name for path in ROOT.iterdir() if path.is_dir())
    for name in re.findall(rf"`((?:{rooms})/[\w/.-]+\.\w+)`", text):
        assert (ROOT / name).exists(), name
    for command in re.findall(r"manage\.py ([a-z]+)\b", text):
        assert command in get_commands(), command


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_pages_that_are_named_exist(document: Path) -> None:
    for path in re.findall(r"`(/[a-z][\w/<>-]*)`", document.read_text()):
        address = re.sub(r"<slug>", "support-bot", path)
        address = re.sub(r"<[^>]+>", "01a1e464-c166-76bb-b939-dd59bab3e80b", address)
        if address == "/api/v1" or address.startswith(("/var/", "/usr/")):
            continue
        try:
            resolve(address)
        except Resolver404:
            pytest.fail(f"{document.name} names {path}, which is not an address of the console")


def test_every_setting_of_the_environment_is_in_the_example() -> None:
    read = set(re.findall(r'env\.\w+\("([A-Z_]+)"', (ROOT / "memoryconsole" / "settings.py").read_text()))
    shown = set(re.findall(r"^# ([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert read == shown


def test_privacy_names_every_action_of_the_audit_log() -> None:
    recorded = set()
    for path in (ROOT / "memories").rglob("*.py"):
        if not {"management", "cli", "migrations"} & set(path.parts):
            recorded |= actions_in(path.read_text())
    section = (ROOT / "docs" / "privacy.md").read_text().partition("## The audit log")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == recorded


def actions_in(source: str) -> set[str]:
    """The actions a module records: as a literal, as a constant, or as an argument of a function."""
    constants = re.findall(r"\b(?:record|entry)\(scope, ([A-Z_]+)\b", source)
    named = "|".join(["action", "action: str", *constants])
    literals = re.findall(r'\baudit\.(?:record|entry)\(\s*scope,\s*"([^"]+)"', source)
    return {*literals, *re.findall(rf'\b(?:{named}) ?= ?"([^"]+)"', source)}


def test_the_readme_names_every_room() -> None:
    readme = (ROOT / "README.md").read_text()
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))}
    assert {room for room in rooms if f"{room}/" not in readme} == set()
