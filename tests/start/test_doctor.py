"""`manage.py doctor` finds what is wrong and says what to do about it."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from memoryconsole import doctor
from tests.factories import make_instance, store_with_another_encryption_key

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def private_secrets(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    (tmp_path / "secrets").mkdir(mode=0o700)


def report(*arguments: str) -> tuple[str, int]:
    out, code = StringIO(), 0
    try:
        call_command("doctor", *arguments, stdout=out)
    except SystemExit as end:
        code = int(end.code or 0)
    return out.getvalue(), code


def test_a_sound_set_up_is_all_ticks_but_for_the_worker():
    text, code = report()
    assert code == 0
    assert "✗" not in text
    assert "✓ database: PostgreSQL" in text
    assert "✓ pgvector" in text
    assert "✓ text: UTF8" in text
    assert "! worker: No worker is running." in text


def test_json_has_the_same_findings():
    text, code = report("--json")
    answer = json.loads(text)
    assert (answer["healthy"], code) == (True, 0)
    assert {"check", "level", "message", "advice"} == set(answer["findings"][0])


def test_an_unreachable_database_is_broken_and_says_why(settings, monkeypatch):
    settings.EMBEDDED_POSTGRES = False
    for name, value in {"HOST": "127.0.0.1", "PORT": "1", "PASSWORD": "hunter2"}.items():
        monkeypatch.setitem(connection.settings_dict, name, value)
    text, code = report()
    assert code == 1
    assert "✗ database: The database cannot be reached." in text
    assert "Connection refused" in text
    assert "hunter2" not in text


def test_readable_secrets_are_broken(settings):
    (settings.DATA_DIR / "secrets" / "secret-key").write_text("x")
    (settings.DATA_DIR / "secrets" / "secret-key").chmod(0o644)
    text, code = report()
    assert code == 1
    assert "✗ secrets: Others may read" in text
    assert "chmod" in text


@pytest.mark.parametrize("secret", ["changeme", "x" * 50, "0123456789abcdef0123456789abcde"])
def test_a_secret_key_that_can_be_guessed_is_told(settings, secret):
    settings.SECRET_KEY = secret
    text, code = report()
    assert code == 0
    assert "! secrets: SECRET_KEY can be guessed" in text
    assert secret not in text


def test_a_key_that_was_stored_with_another_encryption_key_is_broken():
    assert doctor.stored_keys().level == "ok"
    store_with_another_encryption_key(make_instance("support-bot"), "sk-secret-0123456789")
    text, code = report()
    assert code == 1
    assert "✗ stored keys: Stored OpenAI keys that cannot be read: 1." in text
    assert "FIELD_ENCRYPTION_KEYS" in text


def test_a_data_directory_open_to_everyone_is_broken(settings):
    settings.DATA_DIR.chmod(0o777)
    assert doctor.data_directory().level == "broken"


def test_a_missing_data_directory_is_broken(settings, tmp_path):
    settings.DATA_DIR = tmp_path / "missing"
    assert doctor.data_directory().level == "broken"


@pytest.mark.parametrize(
    ("host", "allowed", "level"),
    [
        ("127.0.0.1", ["127.0.0.1", "localhost"], "ok"),
        ("0.0.0.0", ["127.0.0.1", "localhost"], "warning"),  # noqa: S104
        ("0.0.0.0", ["memory.example.com"], "ok"),  # noqa: S104
        ("10.0.0.5", ["*"], "ok"),
    ],
)
def test_a_public_host_needs_names(settings, host, allowed, level):
    settings.HOST, settings.ALLOWED_HOSTS = host, allowed
    assert doctor.allowed_hosts().level == level


def test_the_provider_is_told(settings):
    settings.OPENAI_API_KEY = settings.AZURE_OPENAI_ENDPOINT = settings.AZURE_OPENAI_API_KEY = ""
    settings.AZURE_OPENAI_EMBEDDING_DEPLOYMENT = ""
    told = doctor.provider()
    assert told.level == "info"
    assert "learn nothing" in told.message
    assert "offline embedder" in told.advice
    settings.OPENAI_API_KEY = "sk-test"
    assert doctor.provider().level == "ok"
    settings.AZURE_OPENAI_ENDPOINT = "https://example.openai.azure.com"
    assert doctor.provider().level == "warning"


def test_an_mcp_port_that_nobody_opened_is_told(settings):
    assert doctor.mcp().level == "ok"
    settings.MCP_PORT = 1
    assert doctor.mcp().level == "warning"
    assert "mcpserver" in doctor.mcp().advice


@pytest.mark.parametrize(("free", "level"), [(10**8, "broken"), (10**9, "warning"), (10**11, "ok")])
def test_little_disk_space_is_told(monkeypatch, free, level):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: doctor.shutil._ntuple_diskusage(10**12, 0, free))
    assert doctor.disk_space().level == level
