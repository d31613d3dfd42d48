"""Input from outside, as typed objects: one model per thing that can be sent, whoever sends it.

JSON bodies, query strings, forms, commands and tools are all read by the same models, so that every door gives the
same answer to the same mistake.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar
from unicodedata import category

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from memoryconsole.errors import Invalid
from memoryconsole.scrub import scrub


class Input(BaseModel):
    """camelCase outside, snake_case inside; unknown names are errors."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


T = TypeVar("T", bound=Input)
LONGEST_QUOTED = 100
LONGEST_NUMBER = 12
# No text becomes so many times as long: the shortest credential and what it is known by are seven characters.
MOST_GROWTH = 4
# Control and format characters, and separators.
SHAPELESS = {"Cc", "Cf", "Zl", "Zp", "Zs"}
NUMBER = re.compile(r"\s*[-+]?\d+(\.\d*)?\s*")


def read(model: type[T], data: Mapping[str, Any]) -> T:
    """The input as an object, or `Invalid` with every reason by its public name."""
    if not isinstance(data, Mapping):
        raise Invalid({"body": ["Send a JSON object."]})
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        reasons: dict[str, list[str]] = {}
        for detail in error.errors(include_url=False):
            reasons.setdefault(_field(detail), []).append(_reason(detail))
        raise Invalid(reasons) from None


def read_or_default(model: type[T], data: Mapping[str, Any]) -> tuple[T, Invalid | None]:
    """The input, or what it is when nothing is said, with the reasons: for pages that show something all the same."""
    try:
        return read(model, data), None
    except Invalid as problem:
        return model(), problem


def no_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("The NUL character is not allowed.")
    return text


def visible(text: str) -> str:
    if not is_visible(text):
        raise ValueError(REASONS["string_too_short"])
    return text


def is_visible(text: str) -> bool:
    """Not only spaces, nor what has no shape at all, such as the zero-width space that comes along with copied text."""
    return any(category(character) not in SHAPELESS for character in text)


def at_most(limit: int) -> AfterValidator:
    """Characters when it is stored: what takes the place of a credential may be longer than that was."""

    def check(text: str) -> str:
        stored = len(scrub(text)[0]) if len(text) * MOST_GROWTH > limit else len(text)
        if stored > limit:
            raise ValueError(
                f"With its credentials replaced this has {stored:,} characters; at most {limit:,} are allowed."
            )
        return text

    return AfterValidator(check)


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("This is before the year 1 or after the year 9999.") from None


def _iso_date(value: object) -> object:
    """A number, or digits alone, would be taken for seconds since 1970: a year for an hour of that day."""
    if isinstance(value, str) and NUMBER.fullmatch(value):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(REASONS["datetime_type"]) from None
    if isinstance(value, int | float):
        raise ValueError(REASONS["datetime_type"])
    return value


def _not_a_flag(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("Enter a number.")
    return value


def not_null(value: object) -> object:
    if value is None:
        raise ValueError("This may not be null.")
    return value


def _spaced(value: object) -> object:
    """A NUL is no word: it separates words like a space."""
    return value.replace("\x00", " ").strip() if isinstance(value, str) else value


def _empty_for_null(value: object) -> object:
    return "" if value is None else value


Text = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(no_nul)]
# What is looked for, where hardly anything is wrong enough to be refused.
Words = Annotated[str, BeforeValidator(_spaced)]
# Where nothing is a value: answers say null for it, and so may whoever asks.
Perhaps = BeforeValidator(_empty_for_null)
Moment = Annotated[datetime, BeforeValidator(_iso_date), AfterValidator(_in_utc)]
Number = Annotated[int, BeforeValidator(_not_a_flag)]
Fraction = Annotated[float, BeforeValidator(_not_a_flag), Field(allow_inf_nan=False)]
# A part of a list: how many rows, and from where.
MOST_ROWS = 100
Limit = Annotated[Number, Field(ge=1, le=MOST_ROWS)]
Offset = Annotated[Number, Field(ge=0, le=10_000)]
Cursor = Annotated[Text, Field(max_length=500)]


def _field(detail: ErrorDetails) -> str:
    return ".".join(str(part) for part in detail["loc"]) or "body"


def _reason(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    kind = detail["type"]
    if kind == "value_error":
        return str(context["error"])
    if kind in {"string_too_long", "too_long"} and isinstance(detail["input"], str):
        return f"At most {context['max_length']:,} characters are allowed; this has {len(detail['input']):,}."
    if kind == "too_short" and isinstance(detail["input"], str):
        kind = "string_too_short"
    reason = REASONS.get(kind, detail["msg"] + ".").format(**context)
    return f"“{detail['input']}” is not known. {reason}" if _is_wrong_word(detail) else reason


def _is_wrong_word(detail: ErrorDetails) -> bool:
    """One that can be shown to whoever wrote it, and stored in a report: no NUL, and no whole text."""
    word = detail["input"]
    if detail["type"] not in {"enum", "literal_error"} or not isinstance(word, str):
        return False
    return 0 < len(word) <= LONGEST_QUOTED and word.isprintable()


REASONS = {
    "missing": "This field is required.",
    "extra_forbidden": "Unknown field.",
    "string_too_short": "This may not be empty.",
    "string_type": "Enter text.",
    "string_unicode": "This is not valid Unicode text.",
    "int_type": "Enter a whole number.",
    "int_parsing": "Enter a whole number.",
    "int_from_float": "Enter a whole number.",
    "float_type": "Enter a number.",
    "float_parsing": "Enter a number.",
    "finite_number": "Enter a finite number.",
    "greater_than_equal": "Must be at least {ge}.",
    "less_than_equal": "Must be at most {le}.",
    "bool_type": "Enter true or false.",
    "bool_parsing": "Enter true or false.",
    "literal_error": "Choose one of: {expected}.",
    "enum": "Choose one of: {expected}.",
    "uuid_type": "This is not an id.",
    "uuid_parsing": "This is not an id.",
    "datetime_type": "Enter a date and time like 2026-05-12T15:00:00Z.",
    "datetime_parsing": "Enter a date and time like 2026-05-12T15:00:00Z.",
    "datetime_from_date_parsing": "Enter a date and time like 2026-05-12T15:00:00Z.",
    "datetime_object_invalid": "Enter a date and time like 2026-05-12T15:00:00Z.",
    "list_type": "Send a list.",
    "dict_type": "Send an object.",
    "model_type": "Send an object.",
    "too_long": "At most {max_length:,} are allowed; this has {actual_length:,}.",
    "too_short": "At least {min_length} is needed.",
}


def whole_number(typed: str) -> int | None:
    """What an address or a field of a page says, from 0; None when it is no number, or longer than any of ours."""
    return int(typed) if typed.isdecimal() and len(typed) <= LONGEST_NUMBER else None


def snake_name(public_name: str) -> str:
    """`sourceConversationId` as `source_conversation_id`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in public_name)


# What pydantic calls a bound on a number that a function of ours looks at first.
BOUNDS = {"ge": "minimum", "le": "maximum"}


def tidy_schema(part: Any) -> Any:
    """JSON Schema's own words for bounds, and no titles that only repeat a field's name."""
    if isinstance(part, list):
        return [tidy_schema(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        BOUNDS.get(name, name): tidy_schema(value)
        for name, value in part.items()
        if name != "title" or not isinstance(value, str)
    }


def never_null(*names: str) -> Callable[[dict[str, Any]], None]:
    """Describe these fields of a model, or all of them, as what may be left out, but not be null."""

    def describe(schema: dict[str, Any]) -> None:
        fields = schema["properties"]
        schema["properties"] = {
            name: without_null(field) if not names or name in names else field for name, field in fields.items()
        }

    return describe


def without_null(field: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" not in field:
        return field
    (choice,) = (choice for choice in field["anyOf"] if choice.get("type") != "null")
    return dict(choice)
