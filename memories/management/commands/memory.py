import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from django.core.management.base import CommandParser

from accounts.access import Scope
from memories.cli import printing, recalling, transfer
from memories.cli.options import Paging, Searching, add_options, option_names, read_options, values_for
from memories.cli.recalling import add_settings, settings_in
from memories.deletion import Receipt, delete_matching, delete_memories
from memories.draft import MemoryDraft
from memories.filters import Filters
from memories.listing import list_from
from memories.models import Memory
from memories.presenting import found_json, listing_json, memory_json, saved_json
from memories.recall.presenting import recall_json
from memories.recall.recalling import Recalled, RecallRequest, recall
from memories.recall.request import RecallFilters
from memories.search.hybrid import Hit, Results, search
from memories.search.query import read_query
from memories.store import find_memory, save
from memoryconsole.commands import (
    ConsoleCommand,
    add_json_option,
    is_interactive,
    open_from_shell,
    standard_input,
)
from memoryconsole.counting import counted
from memoryconsole.errors import Conflict, Invalid, Problem
from memoryconsole.inputs import read
from memoryconsole.terminal import one_line

LONGEST_INPUT = 8 * 1024 * 1024
SHOWN_BEFORE_DELETING = 10


class Command(ConsoleCommand):
    help = "Adds, lists, finds, recalls, shows, deletes, imports and exports what one instance remembers."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")

        add = actions.add_parser("add", help="remember something")
        add.add_argument(
            "category", metavar="CATEGORY", help="general, preference, fact, event, relationship, decision"
        )
        add.add_argument("content", metavar="TEXT", help="what to remember; - reads it from standard input")
        add_options(add, MemoryDraft, but={"category", "content"})

        listing = actions.add_parser("list", help="the newest memories first, narrowed by filters")
        add_options(listing, Filters)
        add_options(listing, Paging)

        search = actions.add_parser("search", help="find memories by words and meaning, the best first")
        search.add_argument("query", metavar="QUERY", nargs="+", help='words, "a phrase", -without')
        add_options(search, Filters)
        add_options(search, Searching)
        search.add_argument("--explain", action="store_true", help="say of each hit why it was found")

        recall = actions.add_parser("recall", help="what an assistant would be told before it answers")
        recall.add_argument("query", metavar="QUERY", nargs="+", help="what the user says")
        recall.add_argument("--user", dest="user_id", metavar="TEXT", help="the end user, for their private memories")
        add_settings(recall)
        add_options(recall, Filters, but={"include_superseded"})
        recall.add_argument("--explain", action="store_true", help="say of each memory why it is there, or why not")
        recall.add_argument("--log", action="store_true", help="keep it in the log, like one an assistant asked for")

        show = actions.add_parser("show", help="one memory, whole")
        show.add_argument("id", metavar="ID")

        delete = actions.add_parser("delete", help="delete for good, by id or by filters")
        delete.add_argument("ids", metavar="ID", nargs="*")
        add_options(delete, Filters)
        delete.add_argument("--all", action="store_true", help="every memory of the instance")
        delete.add_argument("--expected", metavar="N", type=int, help="delete nothing unless exactly N match")
        delete.add_argument("--yes", action="store_true", help="do not ask first")

        transfer.add_export_options(actions.add_parser("export", help="write all that match to a file, oldest first"))
        transfer.add_import_options(actions.add_parser("import", help="store what is new in a file"))

        for action in actions.choices.values():
            self._add_common_options(action)

    def _add_common_options(self, parser: ArgumentParser) -> None:
        parser.add_argument("--instance", metavar="SLUG", required=True, help="whose memory")
        add_json_option(parser)

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        scope = open_from_shell(options["instance"])
        run: dict[str, Callable[[Scope, dict[str, Any]], None]] = {
            "add": self.add,
            "list": self.list,
            "search": self.search,
            "recall": self.recall,
            "show": self.show,
            "delete": self.delete,
            "export": partial(transfer.export_to_file, self),
            "import": partial(transfer.import_from_file, self),
        }
        run[action](scope, options)

    def add(self, scope: Scope, options: dict[str, Any]) -> None:
        self.written_as = {**option_names(MemoryDraft), "category": "CATEGORY", "content": "TEXT"}
        fields = {"source": "manual", **values_for(MemoryDraft, options)}
        if fields["content"] == "-":
            fields["content"] = self._standard_input()
        try:
            saved = save(scope, read(MemoryDraft, fields))
        except Conflict as conflict:
            raise self._taken(conflict) from None
        answer = saved_json(saved, scope.instance.slug)
        if saved.redacted:
            self.complain(f"Redacted before it was stored: {', '.join(saved.redacted)}.")
        for hint in answer.get("hints", []):
            self.complain(f"{hint['reason']} If it is one, add: --role {hint['value']}")
        if options["json"]:
            self.print_json(answer)
        else:
            self.stdout.write(f"{saved.event.capitalize()} {saved.memory.id}")

    def _standard_input(self) -> str:
        stream = standard_input()
        if is_interactive():
            self.complain("Write the memory, then press Ctrl-D.")
        raw = stream.read(LONGEST_INPUT + 1)
        if len(raw) > LONGEST_INPUT:
            raise Invalid({"content": ["This is far too long for a memory."]})
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise Invalid({"content": ["This is not valid UTF-8."]}) from None

    def _taken(self, conflict: Conflict) -> Conflict:
        """The same conflict with the name of our option; prints the memory that has the key."""
        holder: Memory | None = conflict.extra.get("memory")
        if holder is None:
            return conflict
        self.complain(f"{holder.id} says: {one_line(holder.content)}")
        option = self.written_as["supersedeReason"]
        why = f"Add {option} to say why the current memory is out of date."
        return Conflict(f"The key “{holder.key}” is taken. {why}", code=conflict.code)

    def list(self, scope: Scope, options: dict[str, Any]) -> None:
        paging = read_options(Paging, options)
        filters = read_options(Filters, options)
        found = list_from(scope, filters, limit=paging.limit, offset=paging.offset, cursor=paging.cursor)
        if options["json"]:
            self.print_json(listing_json(found, scope.instance.slug, limit=paging.limit, offset=paging.offset))
            return
        if found.memories:
            self._print_list(found.memories, options)
        self.complain(self._position(len(found.memories), found.total, paging, scope))

    def _position(self, shown: int, total: int, paging: Paging, scope: Scope) -> str:
        if not total:
            return f"Nothing in {scope.instance.slug} matches."
        line = f"{shown} of {counted(total, 'memory', 'memories')} in {scope.instance.slug}."
        rest = paging.offset + shown
        return f"{line} More: --offset {rest}" if not paging.cursor and shown and rest < total else line

    def search(self, scope: Scope, options: dict[str, Any]) -> None:
        self.written_as = {"query": "QUERY"}
        text = " ".join(options["query"])
        how = read_options(Searching, options)
        filters = read_options(Filters, options)
        if read_query(text).is_empty:
            raise Invalid({"query": ["Say what to look for."]})
        found = search(scope, text, filters, mode=how.mode, limit=how.limit, offset=how.offset)
        if options["json"]:
            part = {"limit": how.limit, "offset": how.offset}
            self.print_json(found_json(found, scope.instance, **part, explain=options["explain"]))
            return
        if found.hits:
            self._print_hits(scope, found.hits, options)
        self.complain(*_about_search(scope, found, how))

    def _print_hits(self, scope: Scope, hits: Sequence[Hit], options: dict[str, Any]) -> None:
        if self.stdout.isatty():
            no_color = options["no_color"]
            self.stdout.write(printing.rich_hits(scope.instance, hits, explain=options["explain"], no_color=no_color))
        else:
            self.stdout.write(printing.plain_hits(hits, explain=options["explain"]))

    def recall(self, scope: Scope, options: dict[str, Any]) -> None:
        self.written_as = {**recalling.WRITTEN_AS, "query": "QUERY", "user_id": "--user"}
        question = {"query": " ".join(options["query"]), "user_id": options["user_id"] or ""}
        filters = read_options(RecallFilters, options)
        request = read(RecallRequest, {**question, **settings_in(options), "filter": filters})
        recalled = recall(scope, request, log=options["log"])
        if options["json"]:
            self.print_json(recall_json(recalled, scope.instance.slug, explain=options["explain"]))
            return
        self._print_recall(recalled, options)
        self.complain(*recalling.about_recall(recalled))

    def _print_recall(self, recalled: Recalled, options: dict[str, Any]) -> None:
        """Without a terminal, the block is printed exactly as it is."""
        no_color = options["no_color"]
        if self.stdout.isatty():
            self.stdout.write(recalling.rich_block(recalled, no_color=no_color))
            if options["explain"]:
                self.stdout.write(recalling.rich_explanation(recalled, no_color=no_color))
            return
        self.stdout.write(recalled.context)
        if options["explain"]:
            self.stdout.write("\n" + recalling.plain_explanation(recalled))

    def show(self, scope: Scope, options: dict[str, Any]) -> None:
        memory = find_memory(scope, options["id"])
        if options["json"]:
            self.print_json({"memory": memory_json(memory, scope.instance.slug)})
        elif self.stdout.isatty():
            self.stdout.write(printing.rich_memory(memory, no_color=options["no_color"]))
        else:
            self.stdout.write(printing.plain_memory(memory))

    def delete(self, scope: Scope, options: dict[str, Any]) -> None:
        filters = read_options(Filters, options)
        self._check_choice(filters, options)
        receipt = self._delete_ids(scope, options) if options["ids"] else self._delete_matching(scope, filters, options)
        if options["json"]:
            self.print_json(asdict(receipt))
        else:
            self.stdout.write(printing.receipt_line(receipt))

    def _check_choice(self, filters: Filters, options: dict[str, Any]) -> None:
        # This filter widens the result: alone, it would match everything.
        narrowed = bool(filters.narrowing().keys() - {"includeSuperseded"})
        if [bool(options["ids"]), narrowed, options["all"]].count(True) != 1:
            raise Problem("Say which memories to delete: their ids, or filters, or --all.")
        if options["ids"] and (filters.narrowing() or options["expected"] is not None):
            raise Problem("Ids say exactly which memories to delete: leave out filters and --expected.")

    def _delete_ids(self, scope: Scope, options: dict[str, Any]) -> Receipt:
        memories = [find_memory(scope, id) for id in dict.fromkeys(options["ids"])]
        self._ask(memories, len(memories), options)
        return delete_memories(scope, [memory.id for memory in memories])

    def _delete_matching(self, scope: Scope, filters: Filters, options: dict[str, Any]) -> Receipt:
        found = list_from(scope, filters, limit=SHOWN_BEFORE_DELETING)
        expected = found.total if options["expected"] is None else options["expected"]
        if not found.total and not expected:
            self.fail(f"Nothing in {scope.instance.slug} matches; nothing was deleted.")
        if expected == found.total:
            self._ask(found.memories, found.total, options)
        return delete_matching(scope, filters, expected=expected)

    def _ask(self, memories: Sequence[Memory], total: int, options: dict[str, Any]) -> None:
        if options["yes"]:
            return
        if not is_interactive():
            raise Problem("There is nobody to ask: add --yes to delete.")
        for memory in memories[:SHOWN_BEFORE_DELETING]:
            self.complain(f"  {memory.category:<12}  {one_line(memory.content)[:100]}")
        if total > SHOWN_BEFORE_DELETING:
            self.complain(f"  … and {total - SHOWN_BEFORE_DELETING:,} more")
        question = f"Delete {counted(total, 'memory', 'memories')} for good? [y/N] "
        self.stderr.write(question, style_func=str, ending="")
        self.stderr.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            self.fail("Nothing was deleted.")

    def _print_list(self, memories: Sequence[Memory], options: dict[str, Any]) -> None:
        if self.stdout.isatty():
            self.stdout.write(printing.rich_list(memories, no_color=options["no_color"]))
        else:
            self.stdout.write(printing.plain_list(memories))


def _about_search(scope: Scope, found: Results, how: Searching) -> list[str]:
    """How many hits, how they were found, and why the search was not as asked."""
    instance = scope.instance.slug
    lines = [f"Nowhere: “{word}”. Looked for “{other}” instead." for word, other in found.corrected.items()]
    if found.total:
        total = counted(found.total, "memory", "memories")
        shown = how.offset + len(found.hits)
        more = f" More: --offset {shown}" if found.hits and shown < found.total else ""
        lines.append(f"{len(found.hits)} of {total} in {instance}, {printing.MODES[found.mode]} ({found.mode}).{more}")
    else:
        lines.append(f"Nothing in {instance} matches, {printing.MODES[found.mode]} ({found.mode}).")
    return [*lines, found.reason] if found.reason else lines
