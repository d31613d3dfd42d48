"""Input as typed objects: one pydantic model for each kind of input.

JSON bodies, query strings, forms, commands and tools are read by the same models, so that every interface answers the
same mistake in the same way.
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
# Scrubbing makes no text longer than this many times, because every credential it replaces is several characters long.
MOST_GROWTH = 4
# Unicode categories that nobody sees: control and format characters, and separators.
INVISIBLE = {"Cc", "Cf", "Zl", "Zp", "Zs"}
NUMBER = re.compile(r"\s*[-+]?\d+(\.\d*)?\s*")


def read(model: type[T], data: Mapping[str, Any]) -> T:
    """The validated input; `Invalid` has the reasons by public field name."""
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
    """The validated input, or the defaults and the error, for pages that show something in any case."""
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
    """False for text of only spaces and characters without a shape, such as the zero-width space in copied text."""
    return any(category(character) not in INVISIBLE for character in text)


def at_most(limit: int) -> AfterValidator:
    """The longest text after scrubbing, which may replace a credential by something longer."""

    def check(text: str) -> str:
        if len(text) * MOST_GROWTH > limit:
            check_stored(scrub(text)[0], limit)
        return text

    return AfterValidator(check)


def check_stored(scrubbed: str, limit: int) -> None:
    if len(scrubbed) > limit:
        raise ValueError(
            f"With its credentials replaced this has {len(scrubbed):,} characters; at most {limit:,} are allowed."
        )


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("This is before the year 1 or after the year 9999.") from None


def _iso_date(value: object) -> object:
    """Refuse numbers, which pydantic would read as seconds since 1970. Digits may be a date: 20260512."""
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
    """NUL characters separate words, like spaces."""
    return value.replace("\x00", " ").strip() if isinstance(value, str) else value


def _empty_for_null(value: object) -> object:
    return "" if value is None else value


Text = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(no_nul)]
# Words to search for: a NUL is replaced instead of refused.
Words = Annotated[str, BeforeValidator(_spaced)]
# Accepts null for an empty text, because that is how empty texts are answered.
Perhaps = BeforeValidator(_empty_for_null)
Moment = Annotated[datetime, BeforeValidator(_iso_date), AfterValidator(_in_utc)]
Number = Annotated[int, BeforeValidator(_not_a_flag)]
Fraction = Annotated[float, BeforeValidator(_not_a_flag), Field(allow_inf_nan=False)]
# A part of a list.
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
    word = detail["input"]
    return detail["type"] in {"enum", "literal_error"} and isinstance(word, str) and is_quotable(word)


def is_quotable(word: str) -> bool:
    """Whether a reason can quote it: it may be a whole text that was sent in the wrong field."""
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
    "int_parsing_size": "This number has too many digits.",
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
    """A number from 0, from a URL or a form; None if it is not a number, or has too many digits."""
    return int(typed) if typed.isdecimal() and len(typed) <= LONGEST_NUMBER else None


def snake_name(public_name: str) -> str:
    """`sourceConversationId` as `source_conversation_id`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in public_name)


# Pydantic leaves its own names for limits in the schema if a `BeforeValidator` stands before them.
BOUNDS = {"ge": "minimum", "le": "maximum"}


def tidy_schema(part: Any) -> Any:
    """Use JSON Schema's names for limits, and drop titles, which only repeat the field's name."""
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
    """A function for `json_schema_extra`: these fields, or all, may be left out but not be null."""

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
