"""`memory export` and `memory import`"""

import json
import os
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from memories.models import Memory
from tests.commands.conftest import Shell
from tests.factories import make_memory

pytestmark = pytest.mark.usefixtures("support_bot")


def export(shell: Shell, *words: str) -> Any:
    return shell("memory", "export", "--instance", "support-bot", *words)


def bring(shell: Shell, *words: str, instance: str = "sales-bot", **how: Any) -> Any:
    return shell("memory", "import", *words, "--instance", instance, **how)


def test_through_a_pipe(shell: Shell, support_bot: Any, sales_bot: Any) -> None:
    make_memory(support_bot, "Grüße\naus Köln", tags=["a"])
    make_memory(support_bot, "Bread")
    ran = export(shell)
    assert (ran.code, ran.err) == (0, "2 memories of support-bot.\n")
    assert [json.loads(line)["content"] for line in ran.out.splitlines()] == ["Grüße\naus Köln", "Bread"]
    again = bring(shell, "-", stdin=ran.out.encode())
    assert (again.code, again.out, again.err) == (0, "2 memories created, read as jsonl.\n", "")
    again = bring(shell, "-", stdin=ran.out.encode())
    assert again.out == "0 memories created, read as jsonl.\n2 rows there already.\n"


def test_through_a_named_pipe(shell: Shell, sales_bot: Any, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=('{"content": "Tea"}\n',))
    writer.start()
    ran = bring(shell, str(pipe))
    writer.join()
    assert (ran.code, ran.out, ran.err) == (0, "1 memory created, read as jsonl.\n", "")


def test_without_a_standard_input(shell: Shell, support_bot: Any) -> None:
    """As `0<&-` starts a program, or a service manager that was told so."""
    for words in (["import", "-"], ["add", "fact", "-"]):
        ran = shell("memory", *words, "--instance", "support-bot", stdin=None)
        assert (ran.code, ran.out, ran.err) == (2, "", "There is no standard input to read.\n")
    make_memory(support_bot, "Tea")
    ran = shell("memory", "delete", "--all", "--instance", "support-bot", stdin=None)
    assert ran.code == 2
    assert "nobody to ask" in ran.err


def test_through_a_file(shell: Shell, support_bot: Any, sales_bot: Any, tmp_path: Path) -> None:
    make_memory(support_bot, "=1+1", tags=["a"])
    make_memory(support_bot, "Bread")
    file = tmp_path / "out.csv"
    ran = export(shell, "--format", "csv", "--output", str(file), "--tag", "a")
    assert ran.out == f"Wrote 1 memory to {file}\n"
    assert bring(shell, str(file)).code == 0
    assert Memory.objects.get(instance=sales_bot).content == "=1+1"
    assert export(shell, "--output", str(file), "--json").json == {"exported": 2, "file": str(file)}


def test_a_dry_run_reports_by_line(shell: Shell, sales_bot: Any, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"content": "a"}\n{"content": "b", "importance": 11}\n{"content": "password: hunter22"}\n')
    ran = bring(shell, str(file), "--dry-run")
    assert (ran.code, ran.err) == (1, "Line 2: importance: Must be at most 10.\n")
    assert ran.out.splitlines() == [
        "2 memories would be created, read as jsonl.",
        "1 row with problems, not to be imported.",
        "Credentials in 1 row replaced.",
    ]
    report = bring(shell, str(file), "--dry-run", "--json").json["import"]
    assert (report["dryRun"], report["format"], report["created"], report["invalid"]) == (True, "jsonl", 2, 1)
    assert not Memory.objects.exists()


@pytest.mark.parametrize("options", [[], ["--json"], ["--dry-run"], ["--dry-run", "--json"]])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"content": "a"}\n{"content": "a"}\n', 0),
        (b'{"content": "a", "expiresAt": "2020-01-01T00:00:00Z"}\n', 0),
        (b"", 0),
        (b'{"content": "a"}\n{"content": ""}\n', 1),
        (b'{"content": ""}\n', 1),
    ],
)
def test_the_exit_code_says_whether_rows_were_refused(
    shell: Shell, sales_bot: Any, text: bytes, code: int, options: list[str]
) -> None:
    ran = bring(shell, "-", *options, stdin=text)
    assert (ran.code, bool(ran.out)) == (code, True)


def test_formats(shell: Shell, sales_bot: Any) -> None:
    ran = bring(shell, "-", "--format", "chatgpt", stdin=b"- Likes tea\n")
    assert ran.out == "1 memory created, read as chatgpt.\n"
    assert bring(shell, "-", stdin=b"Content;Tags\nLikes cake;a\n").out == "1 memory created, read as csv.\n"
    ran = bring(shell, "-", stdin=b"content,zzz\na,b\n")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("FILE: Unknown columns: zzz. Known columns: id, ")
    ran = bring(shell, "-", "--format", "xml", stdin=b"")
    assert (ran.code, ran.err) == (2, "--format: Choose one of: jsonl, csv, mem0, chatgpt.\n")


def test_a_table_is_known_by_its_name(shell: Shell, sales_bot: Any, tmp_path: Path) -> None:
    file = tmp_path / "Notes.CSV"
    file.write_text("Notes\nAlice likes tea\n")
    ran = bring(shell, str(file))
    assert (ran.code, ran.out) == (2, "")
    assert "Known columns: id, key, content," in ran.err
    assert bring(shell, str(file), "--format", "chatgpt").code == 0


@pytest.mark.parametrize("words", [["/no/such/file"], ["/tmp"]])
def test_files_that_cannot_be_read(shell: Shell, sales_bot: Any, words: list[str]) -> None:
    ran = bring(shell, *words)
    assert (ran.code, ran.out) == (2, "")
    assert f"{words[0]} cannot be read: " in ran.err


def test_a_file_that_cannot_be_written(shell: Shell) -> None:
    ran = export(shell, "--output", "/no/such/folder/x")
    assert (ran.code, ran.err) == (2, "/no/such/folder/x cannot be written: No such file or directory.\n")


def test_no_such_instance(shell: Shell) -> None:
    assert bring(shell, "-", instance="nobody", stdin=b"").code == 3
