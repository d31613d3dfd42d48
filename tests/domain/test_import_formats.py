"""The file formats of imports: tables, lists and JSON of other systems, and files that cannot be read."""

import io
import json
from typing import Any

import pytest

from instances.models import Instance
from memories.models import Memory
from memories.transfer.formats.detecting import Format
from memories.transfer.formats.reading import rows_of
from memoryconsole.errors import Invalid
from memoryconsole.ids import uuid7
from tests.domain.transferring import contents, counts, exported_rows, import_text, lines
from tests.factories import make_instance, make_memory

pytestmark = pytest.mark.django_db


# Formats of other systems


def test_a_table_by_hand(bot: Instance) -> None:
    text = '\ufeffcontent,category,tags,importance\r\n"Alice, who\nlikes tea",fact,"tea, alice",7\r\nBob,,,\r\n'
    assert counts(import_text(bot, text)) == {"rows": 2, "created": 2}
    alice = Memory.objects.get(category="fact")
    assert (alice.content, alice.tags, alice.importance) == ("Alice, who\nlikes tea", ["tea", "alice"], 7)


@pytest.mark.parametrize("tag", ["2024", "true", "null", '"q"', "1.5"])
def test_a_tag_that_is_json_is_a_tag(bot: Instance, tag: str) -> None:
    assert counts(import_text(bot, f"content;tags\nTea;{tag}\n", "csv")) == {"rows": 1, "created": 1}
    assert Memory.objects.get().tags == [tag.strip('"')]


@pytest.mark.parametrize(
    "text",
    [
        "content;category;tags\nTea, green;fact;a,b\n",
        "content\tcategory\ttags\nTea, green\tfact\ta,b\n",
        "category; Content ;TAGS\r\nfact;Tea, green;a, b\r\n",
        '"category";"tags";"content"\n"fact";"a,b";"Tea, green"',
        '\ufeff\n\ncategory,tags,content\n\nfact,"a,b","Tea, green"\n\n',
    ],
)
@pytest.mark.parametrize("format", [None, "csv"])
def test_tables_as_spreadsheets_write_them(bot: Instance, text: str, format: Format | None) -> None:
    report = import_text(bot, text, format)
    assert (report.format, counts(report)) == ("csv", {"rows": 1, "created": 1})
    memory = Memory.objects.get()
    assert (memory.content, memory.category, memory.tags) == ("Tea, green", "fact", ["a", "b"])


@pytest.mark.parametrize(
    "text",
    [
        "foo,bar\n1,2\n",
        "text;category\nTea;fact\n",
        "Memory Text,Date of birth,Note\nTea,2020-01-01,\n",
        "name\tnote\t\nAlice\tlikes tea\t\n",
        "text\nAlice likes tea\n",
        '"summary"\n"Alice likes tea"\n',
    ],
)
def test_a_table_of_something_else_is_no_list_of_memories(bot: Instance, text: str) -> None:
    with pytest.raises(Invalid, match=r"Known columns: id, key, content, .* choose the format chatgpt"):
        import_text(bot, text)
    assert import_text(bot, text, "chatgpt").created == 2


@pytest.mark.parametrize(
    "text",
    [
        "Likes tea, coffee\nLikes bread, butter\n",
        "Tea, coffee; cake\nBread, butter; jam\n",
        "Vegetarian\nHas a dog\n",
        "Has 1,500 books\nHas 2,500 records\n",
        "- Tea,coffee\n- Bread,butter\n",
        "Likes tea,coffee\nHas a dog\n",
        "[2025-03-01] Likes tea,coffee\n[2025-03-02] Likes bread,butter\n",
        "Alice prefers short answers;always\nBob prefers long answers;never\n",
    ],
)
def test_prose_is_no_table(bot: Instance, text: str) -> None:
    report = import_text(bot, text)
    assert (report.format, counts(report)) == ("chatgpt", {"rows": 2, "created": 2})


def test_tables_that_are_none(bot: Instance) -> None:
    with pytest.raises(Invalid, match="one of them is content"):
        import_text(bot, "a,b\n1,2\n", "csv")
    with pytest.raises(Invalid, match="Unknown columns: colour"):
        import_text(bot, "content,colour\n1,2\n", "csv")
    with pytest.raises(Invalid, match="Unknown columns: one without a name"):
        import_text(bot, "content;\n1;\n")
    report = import_text(bot, 'content,owner\na\nb,c,d\n"e,f\n', "csv")
    assert [problem["line"] for problem in report.problems] == [2, 3, 4]


@pytest.mark.parametrize("wrap", ["[%s]", '{"total": 1, "memories": [%s]}', '{"results": [%s]}'])
def test_a_list_of_our_own_memories_loses_nothing(bot: Instance, wrap: str) -> None:
    item = {"content": "Ann likes tea", "visibility": "private", "owner": "ann", "key": "drink", "tags": ["food"]}
    assert counts(import_text(bot, wrap % json.dumps(item))) == {"rows": 1, "created": 1}
    ann = Memory.objects.get()
    assert (ann.visibility, ann.owner, ann.key, ann.tags) == ("private", "ann", "drink", ["food"])


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"PK\x03\x04\x14\x00\x00\x00memory.json\nLikes tea\n", "no text file"),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "no text file"),
        (b"SQLite format 3\x00\x10\n", "no text file"),
        ("Likes tea\n".encode("utf-16"), "UTF-16"),
        ('{"content": "Likes tea"}\n'.encode("utf-16"), "UTF-16"),
    ],
)
def test_a_file_that_is_no_text_is_no_list_of_memories(raw: bytes, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        rows_of(io.BytesIO(raw))


def test_a_line_that_is_no_text_is_a_problem_of_its_own() -> None:
    problems = [bool(row.problem) for row in rows_of(io.BytesIO(b"Likes tea\nCaf\xe9\nHas a dog\n"))]
    assert problems == [False, True, False]


def test_text_may_begin_like_another_kind_of_file(bot: Instance) -> None:
    assert import_text(bot, "ID3 tags matter to Ann\nOggS is a sound\n").created == 2


MEM0: dict[str, list[Any]] = {
    "count": 2,
    "results": [
        {
            "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
            "memory": "Dev works at Acme",
            "hash": "abc",
            "user_id": "dev",
            "metadata": {"category": "fact", "team": "core"},
            "categories": ["work"],
            "created_at": "2025-01-02T03:04:05.000000-08:00",
            "updated_at": None,
        },
        {"id": "x", "memory": "Likes tea", "user_id": "dev", "agent_id": "bot", "created_at": "2025-02-02T00:00:00Z"},
    ],
}


@pytest.mark.parametrize(
    "text",
    [json.dumps(MEM0), json.dumps(MEM0, indent=2), json.dumps(MEM0["results"]), lines(*MEM0["results"])],
)
def test_mem0(bot: Instance, text: str) -> None:
    for created in (2, 0):
        assert import_text(bot, text).created == created
    work = Memory.objects.get(category="fact")
    assert (work.content, work.owner, work.source, work.tags) == ("Dev works at Acme", "dev", "mem0", ["work"])
    assert (work.evidence, work.created_at.isoformat()) == ({"team": "core"}, "2025-01-02T11:04:05+00:00")
    assert Memory.objects.get(content="Likes tea").evidence == {"agentId": "bot"}


@pytest.mark.parametrize(
    "text",
    [
        "Likes tea\n\n- Works at Acme\n",
        '["Likes tea", "Works at Acme"]',
        '[{"content": "Likes tea", "created_at": 1735689600.5}, {"content": "Works at Acme", "enabled": true}]',
        '{"memories": [{"content": "Likes tea"},\n {"content": "Works at Acme"}, {"content": "x", "enabled": false}]}',
        "1. Likes tea\n2) Works at Acme",
        "[2025-03-01] - Likes tea\n• Works at Acme",
        "Likes tea\n[2025-03-01] Works at Acme",
    ],
)
def test_chatgpt(bot: Instance, text: str) -> None:
    assert import_text(bot, text).created == 2
    assert contents(bot) == ["Likes tea", "Works at Acme"]
    assert set(Memory.objects.values_list("source", flat=True)) == {"chatgpt"}


def test_a_long_list_is_read_in_parts() -> None:
    items = [{"memory": f"Memory {n} " + "x" * (n % 700), "user_id": "dev"} for n in range(3000)]
    text = '{"note": "[results]", "results" : ' + json.dumps(items, indent=1) + ', "count": 3000}'
    rows = list(rows_of(io.BytesIO(text.encode())))
    assert [row.fields["content"] for row in rows] == [item["memory"] for item in items]
    assert rows[1].line == text[: text.index('{\n  "memory": "Memory 1 ')].count("\n") + 1


def test_a_list_that_breaks_off() -> None:
    first, second = rows_of(io.BytesIO(b'[{"memory": "a"},\n {"memory": "b"'), "mem0")
    assert (first.fields["content"], second.line, second.problem) == (
        "a", 2, "This is not JSON; the rest of the file was not read.",
    )  # fmt: skip
    for text in (b'{"memory": 1', b'{\n"a": 1}', b'["\xff"]'):
        (row,) = rows_of(io.BytesIO(text), "chatgpt")
        assert row.problem


def test_the_api_s_own_list(bot: Instance) -> None:
    make_memory(bot, "Tea", category="preference", importance=9)
    text = json.dumps({"total": 1, "memories": exported_rows(bot)})
    other = make_instance()
    import_text(other, text)
    assert exported_rows(other) == exported_rows(bot)


# Files and rows that cannot be read


@pytest.mark.parametrize(
    "text",
    [
        '[["Likes tea", "Works at Acme"],\n ["Has a dog"]]',
        '[[{"content": "Likes tea"}],\n[{"content": "Works at Acme"}]]',
        "[ [1, 2],\n[3]]",
        '[[1],\n[[[{"memory": "Likes tea"}]]]]',
    ],
)
@pytest.mark.parametrize("format", [None, "chatgpt"])
def test_lists_in_a_list_are_no_memories(bot: Instance, text: str, format: Format | None) -> None:
    report = import_text(bot, text, format)
    assert counts(report) == {"rows": 2, "invalid": 2}
    assert [problem["line"] for problem in report.problems] == [1, 2]
    assert report.problems[0]["errors"] == {"row": ["This is not an object."]}


def test_one_list_in_a_list_is_no_memory(bot: Instance) -> None:
    assert counts(import_text(bot, "[[1, 2]]\n")) == {"rows": 1, "invalid": 1}


def test_lines_that_begin_with_brackets_are_a_list(bot: Instance) -> None:
    assert import_text(bot, "[[Alice]] likes tea\n[[2025]] Bob likes coffee\n").created == 2
    assert import_text(make_instance(), "[[2025]] Bob likes coffee\n[[Alice]], likes tea\n").created == 2


def test_tasks_with_a_box_to_tick_are_a_list(bot: Instance) -> None:
    assert import_text(bot, "[ ] Call Alice\n[x] Send the invoice\n").created == 2
    assert import_text(bot, "[ ]\n").rows == 0


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("column", ["evidence", "tags", "sourceMessageIds"])
@pytest.mark.parametrize("cell", ["[" * 100_000, nested(50_000)])
def test_a_cell_that_is_nested_too_deeply(bot: Instance, column: str, cell: str) -> None:
    report = import_text(bot, f"content,{column}\nbad,{cell}\ngood,\n")
    assert counts(report) == {"rows": 2, "created": 1, "invalid": 1}
    (problem,) = report.problems
    assert problem["line"] == 2
    assert all(field.startswith(column) for field in problem["errors"])
    assert contents(bot) == ["good"]


@pytest.mark.parametrize("levels", [900, 960, 975, 985, 3_000, 100_000])
@pytest.mark.parametrize("field", ["content", "category", "role", "evidence", "supersededById", "contnet"])
def test_a_first_line_that_is_nested_too_deeply(bot: Instance, field: str, levels: int) -> None:
    bad = f'{{"id": "x", "{field}": {nested(levels)}}}'
    old = {"content": "old", "status": "superseded", "supersededById": str(uuid7())}
    report = import_text(bot, f"{bad}\n{lines(old)}", None if levels > 1_000 else "jsonl")
    assert counts(report) == {"rows": 2, "created": 1, "invalid": 1}
    assert report.problems[0]["line"] == 1


@pytest.mark.parametrize("levels", [900, 975, 985, 3_000, 100_000])
@pytest.mark.parametrize("field", ["categories", "metadata", "user_id"])
@pytest.mark.parametrize("around", ["[{},\n{}]", '{{"results": [{},\n{}]}}', "{}\n{}\n"])
def test_mem0_that_is_nested_too_deeply(bot: Instance, around: str, field: str, levels: int) -> None:
    value = nested(levels) if field != "metadata" else '{"a]\\"": ' * levels + "1" + "}" * levels
    text = around.format(f'{{"memory": "bad", "{field}": {value}}}', '{"memory": "good"}')
    report = import_text(bot, text, "mem0")
    assert counts(report) == {"rows": 2, "created": 1, "invalid": 1}
    assert report.problems[0]["line"] == 1
    assert contents(bot) == ["good"]


@pytest.mark.parametrize(
    "row",
    [
        '{"content": "x", "evidence": {"a": "\\ud800"}}',
        '{"content": "x", "category": "\\uDC00"}',
        '{"content": "x", "\\ud800": 1}',
    ],
)
@pytest.mark.parametrize("around", ["{}\n{}\n", "[{}, {}]"])
def test_half_of_a_surrogate_pair(bot: Instance, around: str, row: str) -> None:
    report = import_text(bot, around.format(row, '{"content": "\\ud83c\\udf75", "category": "fact"}'))
    assert counts(report) == {"rows": 2, "created": 1, "invalid": 1}
    assert report.problems[0]["errors"] == {"row": ["This has half of a surrogate pair, which is no text."]}
    assert contents(bot) == ["🍵"]


def test_an_id_of_a_time_that_never_comes(bot: Instance) -> None:
    id = "ffffffff-ffff-7fff-bfff-ffffffffffff"
    report = import_text(bot, lines({"content": "x", "id": id, "createdAt": "2020-01-01T00:00:00Z"}))
    assert counts(report) == {"rows": 1, "created": 1}
    assert str(Memory.objects.get().id) != id


def test_bytes_that_are_no_text(bot: Instance) -> None:
    report = import_text(bot, b'{"content": "a"}\n{"content": "\xff"}\n{"content": "b"}', "jsonl")
    assert counts(report) == {"rows": 3, "created": 2, "invalid": 1}
