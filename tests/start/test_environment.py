"""A wrong value in the environment is named, and every variable is documented."""

import os
import re
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from memoryconsole import environment as env
from tests.environment import ROOT, documented_variables
from tests.start.console import manage


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b'A_NAME=1\nDATABASE_URL="postgres://db/console\n', "line 2, must be NAME=value, with both quotes or none."),
        (b"A_NAME 1\n", ""),
        (b"A_NAME='1'2\n", ""),
        (b"A_NAME=caf\xe9\n", "must be UTF-8 text."),
    ],
)
def test_a_line_of_the_file_that_cannot_be_read_stops_the_start(monkeypatch, tmp_path, written, reason):
    monkeypatch.delenv("A_NAME", raising=False)
    path = tmp_path / ".env"
    path.write_bytes(written)
    with pytest.raises(ImproperlyConfigured, match=r"\.env.* must be") as caught:
        env.read_file(path)
    assert str(caught.value).endswith(reason)
    assert "A_NAME" not in os.environ


def test_the_file(monkeypatch, tmp_path):
    path = tmp_path / ".env"
    env.read_file(path)
    path.write_text(
        "\ufeffONE=1\n\n# TWO=2\nexport THREE = 'a # b'  # why\nFOUR=\nFIVE=\"x\ny\"\nSIX=file\n", encoding="utf-8"
    )
    monkeypatch.setattr(os, "environ", {**os.environ, "SIX": "set"})
    env.read_file(path)
    assert [os.environ.get(name) for name in ("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX")] == [
        *("1", None, "a # b", "", "x\ny", "set")
    ]


def test_text_and_words_fall_back_when_empty(monkeypatch):
    monkeypatch.setenv("SOME_NAME", "  ")
    assert env.text("SOME_NAME", "otherwise") == "otherwise"
    assert env.words("SOME_NAME", ["a"]) == ["a"]
    monkeypatch.setenv("SOME_NAME", " one, two,,")
    assert env.words("SOME_NAME", []) == ["one", "two"]


@pytest.mark.parametrize("value", ["eighty", "0", "65536", "-1", "8000.5"])
def test_a_bad_number_names_the_variable(monkeypatch, value):
    monkeypatch.setenv("PORT", value)
    with pytest.raises(ImproperlyConfigured, match=r"^PORT must be a whole number from 1 to 65535"):
        env.number("PORT", 8000, low=1, high=65535)


@pytest.mark.parametrize(
    "value",
    ["https://memory.example.com", "memory.example.com:8000", "memory.example.com/console", "::1", "*.a.com", "a b"],
)
def test_a_host_that_nobody_could_ask_for_names_the_variable(monkeypatch, value):
    monkeypatch.setenv("ALLOWED_HOSTS", f"localhost,{value}")
    with pytest.raises(ImproperlyConfigured, match=r"^ALLOWED_HOSTS must be names or addresses alone") as caught:
        env.hosts("ALLOWED_HOSTS", [])
    assert str(caught.value).endswith(f"not {value!r}.")


def test_hosts(monkeypatch):
    monkeypatch.setenv("ALLOWED_HOSTS", "memory.example.com, .example.com,10.0.0.7,[::1],*,under_score")
    assert env.hosts("ALLOWED_HOSTS", [])[3:] == ["[::1]", "*", "under_score"]


@pytest.mark.parametrize(
    "value", ["memory.example.com", "https://memory.example.com/", "https://a.com/console", "https://"]
)
def test_an_origin_that_no_browser_sends_names_the_variable(monkeypatch, value):
    monkeypatch.setenv("CSRF_TRUSTED_ORIGINS", f"https://*.example.com:8443,{value}")
    with pytest.raises(ImproperlyConfigured, match=r"^CSRF_TRUSTED_ORIGINS must be origins such as") as caught:
        env.origins("CSRF_TRUSTED_ORIGINS")
    assert str(caught.value).endswith(f"not {value!r}.")


@pytest.mark.parametrize(
    "value", ["localhost:8089/v1", "api.example.com", "https://", "https://[::1", "http://a:x", "http://a b"]
)
def test_an_address_that_leads_nowhere_names_the_variable(monkeypatch, value):
    monkeypatch.setenv("OPENAI_BASE_URL", value)
    with pytest.raises(ImproperlyConfigured, match=r"^OPENAI_BASE_URL must be an address such as https://"):
        env.address("OPENAI_BASE_URL")


def test_addresses(monkeypatch):
    for value in ("", "http://127.0.0.1:8089/v1", "https://example.openai.azure.com", "http://[::1]:8089/"):
        monkeypatch.setenv("OPENAI_BASE_URL", value)
        assert env.address("OPENAI_BASE_URL") == value


@pytest.mark.parametrize(
    "value", ["sk-hunter2 sk-other", "“sk-hunter2”", "sk-hunter2\u200b", "sk-hunter2\nX: y", "sk-hünter2"]
)
def test_a_key_that_cannot_be_sent_names_the_variable_and_not_the_key(monkeypatch, value):
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(ImproperlyConfigured, match=r"^OPENAI_API_KEY must be a key alone") as caught:
        env.key("OPENAI_API_KEY")
    assert "unter2" not in str(caught.value)


@pytest.mark.parametrize("value", ["", " sk-hunter2 ", "x", "sk-proj_A-b.c/d+e="])
def test_keys(monkeypatch, value):
    monkeypatch.setenv("OPENAI_API_KEY", value)
    assert env.key("OPENAI_API_KEY") == value.strip()


def test_a_bad_flag_names_the_variable(monkeypatch):
    monkeypatch.setenv("HTTPS", "maybe")
    with pytest.raises(ImproperlyConfigured, match=r"^HTTPS must be yes or no"):
        env.flag("HTTPS", False)


def test_a_bad_choice_names_the_variable(monkeypatch):
    monkeypatch.setenv("LOG_LEVEL", "debug")
    assert env.one_of("LOG_LEVEL", "INFO", ["DEBUG", "INFO"]) == "DEBUG"
    monkeypatch.setenv("LOG_LEVEL", "chatty")
    with pytest.raises(ImproperlyConfigured, match=r"^LOG_LEVEL must be one of DEBUG, INFO, not 'CHATTY'"):
        env.one_of("LOG_LEVEL", "INFO", ["DEBUG", "INFO"])


def test_a_bad_encryption_key_names_the_variable_and_not_the_key(monkeypatch):
    good = "A" * 43 + "="
    assert env.fernet_keys("FIELD_ENCRYPTION_KEYS", lambda: good) == [good]
    monkeypatch.setenv("FIELD_ENCRYPTION_KEYS", f"{good},hunter2")
    with pytest.raises(ImproperlyConfigured, match=r"^FIELD_ENCRYPTION_KEYS must be .* number 2 is not") as caught:
        env.fernet_keys("FIELD_ENCRYPTION_KEYS", lambda: good)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "mysql://localhost/x",
        "postgres://localhost",
        "localhost:5432/x",
        "postgres://ada:hunter2@localhost:many/x",
        "postgres://ada:hunter2/@localhost/x",
        "postgres://ada:[hunter2@localhost/x",
    ],
)
def test_a_bad_database_url_names_the_variable_and_not_the_password(monkeypatch, value):
    monkeypatch.setenv("DATABASE_URL", value)
    with pytest.raises(ImproperlyConfigured, match=r"^DATABASE_URL must look like postgres://") as caught:
        env.postgres_url("DATABASE_URL")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_database_url_is_taken_apart(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:p%40ss@db.example:6432/memory%20console?sslmode=require")
    assert env.postgres_url("DATABASE_URL") == {
        "NAME": "memory console",
        "USER": "ada",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": "6432",
        "OPTIONS": {"sslmode": "require"},
    }


def test_a_relative_data_directory_is_the_same_one_from_everywhere(data_dir, tmp_path):
    relative = os.path.relpath(data_dir, ROOT)
    command = [sys.executable, "-c", "from memoryconsole.settings import DATA_DIR; print(DATA_DIR.resolve())"]
    environment = {**os.environ, "DATA_DIR": relative, "PYTHONPATH": str(ROOT)}
    for place in (ROOT, tmp_path):
        answer = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == str(data_dir.resolve())
    assert not list(tmp_path.iterdir())


def test_a_data_directory_may_be_below_the_home_directory(tmp_path):
    command = [sys.executable, "-c", "from memoryconsole.settings import DATA_DIR; print(DATA_DIR)"]
    environment = {**os.environ, "HOME": str(tmp_path), "DATA_DIR": "~/memories", "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == str(tmp_path / "memories")


@pytest.mark.parametrize("command", ["up", "doctor", "memory", "check"])
def test_whoever_sets_a_bad_value_is_told_in_one_line(data_dir, command):
    refused = manage(command, data_dir=data_dir, ALLOWED_HOSTS="https://memory.example.com")
    assert refused.returncode == 1
    assert refused.stderr.startswith("ALLOWED_HOSTS must be names or addresses alone")
    assert len(refused.stderr.splitlines()) == 1


def test_a_home_directory_nobody_has_is_said(monkeypatch):
    monkeypatch.setenv("DATA_DIR", "~nobody-has-this-name/memories")
    with pytest.raises(ImproperlyConfigured, match="DATA_DIR begins with ~"):
        env.path("DATA_DIR", ".data")


def test_every_variable_is_documented():
    source = (ROOT / "memoryconsole" / "settings.py").read_text()
    read = set(re.findall(r'\benv\.\w+\(\s*"([A-Z_]+)"', source))
    assert read == documented_variables()
