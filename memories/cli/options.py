"""Command-line options made from pydantic models, so that a field has the same name in the API and in commands."""

from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin
from uuid import UUID

from django.db.models import TextChoices
from pydantic.fields import FieldInfo

from memoryconsole.commands import option_name
from memoryconsole.inputs import MOST_ROWS, Cursor, Input, Limit, Offset, read
from memoryconsole.parsing import NotJson, parse_json

T = TypeVar("T", bound=Input)

HELP = {
    "category": "what it is about",
    "role": "how prompts use it",
    "tag": "has this tag; repeat it for memories that have all of them",
    "tags": "a tag; repeat it for several",
    "source": "where it came from: manual, auto, api, import or a tool's own label",
    "owner": "the end user it belongs to",
    "visibility": "how far beyond its instance it may be read",
    "pinned": "pinned, or not pinned",
    "min_importance": "at least this important",
    "created_after": "remembered at or after this time",
    "created_before": "remembered before this time",
    "occurred_after": "happened at or after this time",
    "occurred_before": "happened before this time",
    "conversation_id": "learnt in this conversation",
    "embedding": "state of its vector",
    "include_superseded": "also what something newer has replaced",
    "importance": "1 to 10; 5 unless given",
    "confidence": "0 to 1; 1 unless given",
    "key": "a short name; saving under it again updates the memory",
    "summary": "a shorter text",
    "source_conversation_id": "the conversation it was learnt in",
    "source_message_ids": "the message it was learnt from; repeat it for several",
    "occurred_at": "when it happened, like 2026-05-12T15:00:00Z",
    "channel": "where it happened: chat, email, phone, …",
    "expires_at": "when to forget it",
    "evidence": "what supports it, as a JSON object",
    "supersede_reason": "why the memory with this key is out of date",
    "dedupe": "when the key is taken",
    "mode": "words and meaning, words alone, or meaning alone",
    "limit": f"how many, 1 to {MOST_ROWS}; 20 unless given",
    "offset": "how many to skip first",
    "cursor": "go on after an earlier answer: its nextCursor",
}

METAVARS: list[tuple[type, str]] = [
    (TextChoices, "WORD"),
    (datetime, "TIME"),
    (UUID, "ID"),
    (dict, "JSON"),
    (int, "N"),
    (float, "X"),
]


class Searching(Input):
    """The mode of a search, and the part of the results to show."""

    mode: Literal["hybrid", "keyword", "vector"] = "hybrid"
    limit: Limit = 20
    offset: Offset = 0


class Paging(Input):
    """The part of a list to show."""

    limit: Limit = 20
    offset: Offset = 0
    cursor: Cursor = ""


def add_options(parser: ArgumentParser, model: type[Input], *, but: Collection[str] = ()) -> None:
    for name, field in model.model_fields.items():
        if name not in but:
            _add_option(parser, name, field)


def values_for(model: type[Input], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of this model that are on the command line; the model has defaults for the others."""
    return {name: options[name] for name in model.model_fields if options.get(name) is not None}


def read_options(model: type[T], options: Mapping[str, Any]) -> T:
    return read(model, values_for(model, options))


def option_names(model: type[Input]) -> dict[str, str]:
    """The option of each field, by its public name, for error messages."""
    return {field.alias or name: option_for(name, field) for name, field in model.model_fields.items()}


def option_for(name: str, field: FieldInfo) -> str:
    """The option is in the singular for a list, because it is repeated for each item."""
    return option_name(name.removesuffix("s") if get_origin(field.annotation) is list else name)


def _add_option(parser: ArgumentParser, name: str, field: FieldInfo) -> None:
    parts = list(_parts(field.annotation))
    settings: dict[str, Any] = {"dest": name, "help": _help(name, parts)}
    if bool in parts:
        settings |= {"action": BooleanOptionalAction}
    else:
        settings |= {"metavar": _metavar(parts)}
    if get_origin(field.annotation) is list:
        settings |= {"action": "append"}
    if dict in parts:
        settings |= {"type": _json_object}
    parser.add_argument(option_for(name, field), **settings)


def _metavar(parts: list[Any]) -> str:
    if any(isinstance(part, str) for part in parts):
        return "WORD"
    return next((word for kind, word in METAVARS if _is_among(kind, parts)), "TEXT")


def _help(name: str, parts: list[Any]) -> str:
    enums = [part for part in parts if isinstance(part, type) and issubclass(part, TextChoices)]
    words = [word for enum in enums for word in enum.values] or [part for part in parts if isinstance(part, str)]
    return f"{HELP.get(name, '')}: {', '.join(words)}" if words else HELP.get(name, "")


def _parts(annotation: Any) -> Iterator[Any]:
    """The types in an annotation, and the values of a Literal."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if isinstance(get_origin(annotation), type):
        yield get_origin(annotation)
    inner = get_args(annotation)
    if not inner:
        yield annotation
    for part in inner:
        yield from _parts(part)


def _is_among(kind: type, parts: list[Any]) -> bool:
    return any(isinstance(part, type) and issubclass(part, kind) for part in parts)


def _json_object(raw: str) -> dict[str, Any]:
    try:
        found = parse_json(raw)
    except NotJson as error:
        raise ArgumentTypeError(f"this is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ArgumentTypeError('write a JSON object, like {"corroborated": 3}')
    return found
