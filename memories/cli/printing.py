"""Printing memories: with colours on a terminal, and as plain aligned lines elsewhere."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from html import unescape
from io import StringIO
from typing import TYPE_CHECKING, Any

from instances.models import Instance
from memories.deletion import Receipt
from memories.models import Memory
from memories.search.hybrid import Found, Hit
from memories.search.marking import snippets
from memories.vocabulary import Category
from memoryconsole.counting import counted
from memoryconsole.terminal import one_line, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

COLOURS = {
    Category.GENERAL: "white",
    Category.PREFERENCE: "magenta",
    Category.FACT: "cyan",
    Category.EVENT: "yellow",
    Category.RELATIONSHIP: "green",
    Category.DECISION: "blue",
}
# How something was found.
MODES = {
    "hybrid": "by words and meaning",
    "keyword": "by words",
    "vector": "by meaning",
    "recency": "the newest",
    "off": "switched off",
}
TEXT = "Memory, creation time (UTC) and id"
# The width of the table without the text of a memory.
OTHER_COLUMNS = 26
# How many lines of text are shown; not quite two, because words do not fill a line to its end.
TWO_LINES = 1.8


def plain_list(memories: Sequence[Memory]) -> str:
    """One memory per line, without tabs, for `cut`, `awk` and `grep`. The full text comes last."""
    rows = [("ID", "CATEGORY", "IMP", "PINNED", "CREATED (UTC)", "CONTENT")]
    rows += [
        (
            str(memory.id),
            memory.category,
            str(memory.importance),
            "pinned" if memory.pinned else "-",
            minute(memory.created_at),
            one_line(memory.content),
        )
        for memory in memories
    ]
    return "\n".join(aligned(rows))


def plain_hits(hits: Sequence[Hit], *, explain: bool) -> str:
    """Best first; with `explain` also the ranks in the lists, and the words found."""
    rows = [("ID", "CATEGORY", "IMP", "SCORE", *(EXPLAINED if explain else ()), "CONTENT")]
    rows += [
        (
            str(hit.memory.id),
            hit.memory.category,
            str(hit.memory.importance),
            f"{hit.found.final:.4f}",
            *(_explained(hit.found) if explain else ()),
            one_line(text_of(hit)),
        )
        for hit in hits
    ]
    return "\n".join(aligned(rows))


EXPLAINED = ("VECTOR", "COSINE", "KEYWORD", "CONTEXT", "WORDS")


def _explained(found: Found) -> tuple[str, ...]:
    return (
        str(found.vector_rank or "-"),
        f"{found.similarity:.3f}" if found.similarity is not None else "-",
        str(found.keyword_rank or "-"),
        str(found.context_rank or "-"),
        ",".join(one_line(word) for word in found.matched) or "-",
    )


def text_of(hit: Hit) -> str:
    """The text that was found, which may be an earlier version; with the instance if another one shares it."""
    content = hit.version.content if hit.version else hit.memory.content
    return f"[shared by {hit.origin.slug}] {content}" if hit.origin else content


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    return ["  ".join([*map(str.ljust, row, widths), row[-1]]) for row in rows]


def plain_memory(memory: Memory) -> str:
    facts = facts_about(memory)
    width = max(len(label) for label, _ in facts)
    lines = [f"{label:<{width}}  {one_line(value)}" for label, value in facts]
    return "\n".join([*lines, "", printable(memory.content)])


def rich_list(memories: Sequence[Memory], *, no_color: bool) -> str:
    screen, table = console(no_color), table_of("Category", "Importance", wide=TEXT)
    for memory in memories:
        table.add_row(*_cells(memory, screen.width))
    return rendered_text(screen, table)


def rich_hits(instance: Instance, hits: Sequence[Hit], *, explain: bool, no_color: bool) -> str:
    table = table_of("Category", "Score", wide=TEXT)
    for hit, snippet in zip(hits, snippets(instance, hits), strict=True):
        table.add_row(*_hit_cells(hit, snippet, explain))
    return rendered_text(console(no_color), table)


def table_of(*narrow: str, wide: str) -> "Table":
    """A table with narrow columns, and a wide one that takes the rest."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for title in narrow:
        table.add_column(title, no_wrap=True)
    table.add_column(wide, ratio=1, overflow="fold")
    return table


def _hit_cells(hit: Hit, snippet: str, explain: bool) -> "tuple[RenderableType, ...]":
    from rich.text import Text

    memory = hit.memory
    text = _marked(snippet)
    text.append(f"\n{minute(memory.created_at)} {memory.id}", style="dim")
    earlier = [f"version {hit.version.number}, replaced {minute(hit.version.replaced_at)}"] if hit.version else []
    shared = [f"shared by {hit.origin.slug}"] if hit.origin else []
    text.append("".join(f" {label}" for label in [*earlier, *shared, *_labels(memory)]), style="italic dim")
    if explain:
        text.append(f"\n{explanation(hit.found)}", style="dim")
    return Text(memory.category, style=COLOURS[Category(memory.category)]), Text(f"{hit.found.final:.4f}"), text


def _marked(html: str) -> "Text":
    """A snippet for a terminal: `<mark>` becomes bold."""
    from rich.text import Text

    text = Text()
    for number, part in enumerate(re.split("</?mark>", html)):
        text.append(printable(unescape(part)), style="bold underline" if number % 2 else "")
    return text


def explanation(found: Found) -> str:
    """The parts of the score, in one line."""
    parts = []
    if found.vector_rank:
        parts.append(f"vector #{found.vector_rank} (cosine {found.similarity:.3f}) {found.vector_rrf:.4f}")
    if found.keyword_rank:
        words = ", ".join(one_line(word) for word in found.matched)
        parts.append(f"keyword #{found.keyword_rank} ({words}) {found.keyword_rrf:.4f}")
    if found.context_rank:
        parts.append(f"context #{found.context_rank} {found.context_rrf:.4f}")
    return f"{' + '.join(parts)} = {found.final:.4f}"


@contextmanager
def progress_bar(total: int, *, no_color: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr; call the function with the number done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(file=sys.stderr, force_terminal=True, no_color=no_color or None)
    columns = BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, expand=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, completed=done, total=max(total, done))


def _cells(memory: Memory, width: int) -> "tuple[RenderableType, ...]":
    """`Text`, never a string: rich would read square brackets in a string as its own markup."""
    from rich.text import Text

    colour = COLOURS[Category(memory.category)]
    text = Text(one_line(memory.content))
    text.truncate(int(TWO_LINES * max(20, width - OTHER_COLUMNS)), overflow="ellipsis")
    text.append(f"\n{minute(memory.created_at)} {memory.id}", style="dim")
    text.append("".join(f" {label}" for label in _labels(memory)), style="italic dim")
    return Text(memory.category, style=colour), meter(memory.importance), text


def _labels(memory: Memory) -> list[str]:
    pinned = ["★ pinned"] if memory.pinned else []
    key = [one_line(memory.key)] if memory.key else []
    return [*pinned, *key, *(f"#{one_line(tag)}" for tag in memory.tags)]


def meter(importance: int) -> "RenderableType":
    from rich.text import Text

    filled = (importance + 1) // 2
    style = "bold red" if importance >= 9 else "yellow" if importance >= 7 else "dim"
    return Text(f"{'▰' * filled}{'▱' * (5 - filled)} {importance:>2}", style=style)


def rich_memory(memory: Memory, *, no_color: bool) -> str:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    screen = console(no_color)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for label, value in facts_about(memory):
        facts.add_row(label, Text(one_line(value), style="bold" if label == "Id" else ""))
    return rendered_text(screen, Group(facts, Text(), Text(printable(memory.content), overflow="fold")))


def facts_about(memory: Memory) -> list[tuple[str, str]]:
    """The fields of a memory besides its text, in reading order."""
    facts = {
        "Id": str(memory.id),
        "Key": memory.key,
        "Category": memory.category,
        "Role": memory.role,
        "Importance": f"{memory.importance} of 10",
        "Confidence": f"{memory.confidence:g}" if memory.confidence < 1 else "",
        "Pinned": "yes" if memory.pinned else "",
        "Tags": ", ".join(memory.tags),
        "Summary": memory.summary,
        "Owner": memory.owner,
        "Visibility": memory.visibility,
        "Source": memory.source,
        "Conversation": str(memory.source_conversation_id or ""),
        "Channel": memory.channel,
        "Occurred": moment(memory.occurred_at),
        "Expires": moment(memory.expires_at),
        "Status": memory.status,
        "Embedding": memory.embedding,
        "Created": moment(memory.created_at),
        "Updated": moment(memory.updated_at) if memory.updated_at != memory.created_at else "",
    }
    return [(label, value) for label, value in facts.items() if value]


def receipt_line(receipt: Receipt) -> str:
    parts = [
        counted(receipt.versions, "version"),
        counted(receipt.chunks, "chunk"),
        counted(receipt.embeddings, "vector"),
        counted(receipt.attachments, "attachment"),
    ]
    return f"Deleted {counted(receipt.deleted, 'memory', 'memories')} with {', '.join(parts[:-1])} and {parts[-1]}."


def minute(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M")


def moment(at: datetime | None) -> str:
    return f"{minute(at)} UTC" if at else ""


def console(no_color: bool) -> "Console":
    """Rich detects the width and the colours, and respects NO_COLOR and dumb terminals."""
    from rich.console import Console

    return Console(file=StringIO(), force_terminal=True, highlight=False, no_color=no_color or None)


def rendered_text(screen: "Console", what: Any) -> str:
    with screen.capture() as captured:
        screen.print(what)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
