"""Printing recalls and evaluations: with colours on a terminal, and as plain aligned lines elsewhere."""

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memories.cli.printing import MODES, aligned, console, rendered_text, table_of
from memories.models import Memory
from memories.recall.account import Numbers, numbers_of
from memories.recall.golden import Answer, Variant
from memories.recall.recalling import Recalled
from memories.vocabulary import Role
from memoryconsole.counting import counted
from memoryconsole.terminal import one_line, printable

if TYPE_CHECKING:
    from rich.text import Text

COLOURS = {
    Role.IDENTITY: "magenta",
    Role.LESSON: "yellow",
    Role.DECISION: "blue",
    Role.CONTEXT: "cyan",
    Role.REFERENCE: "green",
    Role.HISTORICAL: "white",
}

# The options for settings of a recall. `RecallSettings` validates the values.
SETTINGS = {
    "limit": ("--limit", "N", "at most so many found memories; 1 to 50"),
    "threshold": ("--threshold", "X", "how similar they must be; 0 to 1"),
    "token_budget": ("--budget", "N", "how many tokens the block may have; 100 to 32000"),
    "half_life_days": ("--half-life", "DAYS", "how fast memories age; 1 to 3650"),
    "mmr_lambda": ("--mmr", "X", "1 looks at the score alone, 0 at differences alone"),
}
WRITTEN_AS = {name: option for name, (option, _, _) in SETTINGS.items()}


def add_settings(parser: ArgumentParser) -> None:
    for name, (option, metavar, help) in SETTINGS.items():
        parser.add_argument(option, dest=name, metavar=metavar, help=f"{help}; as the instance has it unless given")


def settings_in(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in SETTINGS if options.get(name) is not None}


def about_recall(recalled: Recalled) -> list[str]:
    """For stderr: how many memories, how they were found, and why the search was not hybrid."""
    number = counted(len(recalled.memories), "memory", "memories")
    tokens = f"{recalled.tokens:,} of {recalled.settings.token_budget:,} tokens (estimated)"
    line = f"{number}, {tokens}, {MODES[recalled.mode]} ({recalled.mode})."
    return [line, *([recalled.reason] if recalled.reason else []), *recalled.warnings]


HEAD = ("ID", "ROLE", "OUTCOME", "TOKENS", "PLACE", "VECTOR", "COSINE", "KEYWORD", "CONTEXT", "IMP", "PIN", "AGE",
        "SCORE", "CONTENT")  # fmt: skip


def plain_explanation(recalled: Recalled) -> str:
    """The given memories in the order of the block, then the dropped ones with the reasons."""
    return "\n".join(aligned([HEAD, *_rows(recalled)]))


def _rows(recalled: Recalled) -> list[tuple[str, ...]]:
    given = [(one.memory, one.why, str(one.tokens), numbers_of(one.candidate)) for one in recalled.memories]
    dropped = [(one.memory, one.reason, "-", numbers_of(one.candidate)) for one in recalled.dropped]
    return [_row(*one) for one in [*given, *dropped]]


def _row(memory: Memory, outcome: str, tokens: str, numbers: Numbers) -> tuple[str, ...]:
    ranks = (numbers.place, numbers.vector_rank, numbers.similarity, numbers.keyword_rank, numbers.context_rank)
    factors = (numbers.importance, numbers.pin, numbers.recency, numbers.score)
    return (
        str(memory.id),
        memory.role,
        outcome,
        tokens,
        *(_cell(value) for value in (*ranks, *factors)),
        one_line(memory.content),
    )


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def rich_block(recalled: Recalled, *, no_color: bool) -> str:
    """The block with coloured labels."""
    from rich.text import Text

    text = Text()
    for line in recalled.context.split("\n"):
        label = line[1 : line.find("]")].lower() if line.startswith("[") else ""
        text.append_text(_line(printable(line), COLOURS.get(Role(label)) if label in Role.values else None))
    return rendered_text(console(no_color), text)


def _line(line: str, colour: str | None) -> "Text":
    from rich.text import Text

    if not colour:
        return Text(f"{line}\n", style="dim")
    end = line.index("]: ") + 2
    return Text.assemble((line[:end], colour), f"{line[end:]}\n")


def rich_explanation(recalled: Recalled, *, no_color: bool) -> str:
    from rich.text import Text

    table = table_of("Outcome", "Tokens", "Score", wide="Memory, and the numbers that decided")
    for one in recalled.memories:
        table.add_row(Text(one.why, style="green"), str(one.tokens), *_explained(one.memory, numbers_of(one.candidate)))
    for dropped in recalled.dropped:
        cells = _explained(dropped.memory, numbers_of(dropped.candidate), dropped.detail)
        table.add_row(Text(dropped.reason, style="yellow"), "-", *cells)
    return rendered_text(console(no_color), table)


def _explained(memory: Memory, numbers: Numbers, detail: str = "") -> "tuple[str, Text]":
    from rich.text import Text

    text = Text(one_line(memory.content)[:200])
    text.append(f"\n{memory.role} {memory.id}", style="dim")
    named = {
        "place": numbers.place,
        "vector #": numbers.vector_rank,
        "cosine": numbers.similarity,
        "keyword #": numbers.keyword_rank,
        "context #": numbers.context_rank,
        "importance ×": numbers.importance,
        "pin ×": numbers.pin,
        "age ×": numbers.recency,
    }
    known = [f"{name} {_cell(value)}" for name, value in named.items() if value is not None]
    if known:
        text.append(f"\n{', '.join(known)}", style="dim")
    if detail:
        text.append(f"\n{detail}", style="italic dim")
    return _cell(numbers.score), text


LABELS = {"current": "current", "vector": "meaning alone", "keyword": "words alone", "changed": "changed"}


def plain_evaluation(variants: Sequence[Variant]) -> str:
    """A line per variant, then a line per golden query with the ranks of the expected memories."""
    ways = [("SETTINGS", "K", "RECALL@K", "MRR", "NDCG@K", "UNWANTED"), *map(_variant_row, variants)]
    heads = [LABELS[variant.name].upper() for variant in variants]
    queries = [
        (*heads, "QUERY"),
        *(_query_row(answers) for answers in zip(*(v.answers for v in variants), strict=True)),
    ]
    return "\n".join([*aligned(ways), "", *aligned(queries)])


def _variant_row(variant: Variant) -> tuple[str, ...]:
    scores = variant.quality
    shown = ("-", "-", "-") if scores is None else (scores.recall, scores.reciprocal_rank, scores.ndcg)
    cells = [f"{value:.3f}" if isinstance(value, float) else value for value in shown]
    return LABELS[variant.name], str(variant.k), *cells, str(variant.unwanted)


def _query_row(answers: Sequence[Answer]) -> tuple[str, ...]:
    return *(ranks_of(answer) for answer in answers), one_line(answers[0].golden.row.query)


def ranks_of(answer: Answer) -> str:
    """The ranks of the expected memories, `-` for a missing one, `!` for an unexpected one."""
    found = list(answer.found)
    ranks = sorted(found.index(id) + 1 for id in answer.golden.expected if id in found)
    shown = [str(rank) for rank in ranks] + ["-"] * len(answer.missed)
    return (",".join(shown) or "·") + "!" * len(answer.unwanted)


def evaluation_json(variants: Sequence[Variant]) -> dict[str, Any]:
    return {"variants": [_variant_json(variant) for variant in variants]}


def _variant_json(variant: Variant) -> dict[str, Any]:
    scores = variant.quality
    return {
        "name": variant.name,
        "k": variant.k,
        "recall": scores.recall if scores else None,
        "mrr": scores.reciprocal_rank if scores else None,
        "ndcg": scores.ndcg if scores else None,
        "unwanted": variant.unwanted,
        "queries": [_answer_json(answer) for answer in variant.answers],
    }


def _answer_json(answer: Answer) -> dict[str, Any]:
    scores = answer.quality
    return {
        "id": str(answer.golden.row.id),
        "query": answer.golden.row.query,
        "userId": answer.golden.row.owner or None,
        "searchMode": answer.mode,
        "recall": scores.recall if scores else None,
        "reciprocalRank": scores.reciprocal_rank if scores else None,
        "ndcg": scores.ndcg if scores else None,
        "found": [str(id) for id in answer.found],
        "missed": [str(id) for id in answer.missed],
        "unwanted": [str(id) for id in answer.unwanted],
    }
