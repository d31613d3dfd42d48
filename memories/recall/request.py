"""The input of recall: the question, and settings that override the instance's."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from conversations.models import MessageRole
from instances.models import Instance, bounds_of
from memories.chunking import word_count
from memories.draft import Name
from memories.embedding.embedder import search_model_of
from memories.embedding.offline import MODEL as OFFLINE
from memories.filters import Filters
from memories.recall.prompt_block import without_blocks
from memoryconsole.inputs import Fraction, Input, Number, Perhaps, Words

MAX_QUESTION = 100_000
MAX_MESSAGES = 200
# A message with fewer words, like "and where?", is searched together with the one before.
WORDS_ALONE = 4
# Hashed vectors of related texts are about half as similar as a model's.
OFFLINE_SHARE = 0.5

# Search operators, which are plain punctuation in a message.
_OPERATORS = re.compile(r"[\"“”„«»]|(?<!\w)-(?=\w)")


def _within(setting: str) -> Any:
    """The same bounds as the instance's setting."""
    low, high = bounds_of(setting)
    return Field(ge=low, le=high)


def _none_for_null(value: object) -> object:
    return [] if value is None else value


Question = Annotated[Words, StringConstraints(max_length=MAX_QUESTION)]


class RecallMessage(Input):
    role: MessageRole
    content: Question


class RecallFilters(Filters):
    """The filters of a list, except `includeSuperseded`."""

    @field_validator("include_superseded")
    @classmethod
    def _only_what_is_current(cls, value: bool | None) -> bool | None:
        if value:
            raise ValueError("What something newer has replaced is never recalled.")
        return value


class RecallSettings(Input):
    """Settings of one call; one that is left out is the instance's."""

    limit: Annotated[Number, _within("recall_limit")] | None = None
    threshold: Annotated[Fraction, _within("recall_threshold")] | None = None
    token_budget: Annotated[Number, _within("recall_token_budget")] | None = None
    half_life_days: Annotated[Number, _within("recall_half_life_days")] | None = None
    mmr_lambda: Annotated[Fraction, _within("recall_mmr_lambda")] | None = None


class RecallRequest(RecallSettings):
    """What the assistant is about to answer: a `query` or the last `messages`. Without either, the newest are recalled.

    `userId` is the end user: of private memories, only theirs are recalled. `filter` restricts what can be recalled.
    """

    query: Annotated[Question, Perhaps] = ""
    messages: Annotated[list[RecallMessage], BeforeValidator(_none_for_null), Field(max_length=MAX_MESSAGES)] = []
    conversation_id: UUID | None = None
    user_id: Annotated[Name, Perhaps] = ""
    filter: RecallFilters | None = None
    explain: bool = False

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if self.query and self.messages:
            raise ValueError("Send query or messages, not both.")
        return self


@dataclass(frozen=True, slots=True)
class Settings:
    limit: int
    threshold: float
    token_budget: int
    half_life_days: int
    mmr_lambda: float
    injected_cap: int

    def lowest_similarity(self, instance: Instance) -> float:
        return self.threshold * (OFFLINE_SHARE if search_model_of(instance) == OFFLINE else 1)


def settings_for(instance: Instance, request: RecallSettings) -> Settings:
    def chosen(name: str) -> Any:
        requested = getattr(request, name)
        return getattr(instance, f"recall_{name}") if requested is None else requested

    return Settings(
        limit=chosen("limit"),
        threshold=chosen("threshold"),
        token_budget=chosen("token_budget"),
        half_life_days=chosen("half_life_days"),
        mmr_lambda=chosen("mmr_lambda"),
        injected_cap=instance.recall_injected_cap,
    )


def question_in(messages: list[str]) -> str:
    """What to search for: the user's last message, together with the one before if it is too short alone."""
    texts = [text for message in messages if (text := without_blocks(message))]
    last = texts[-1] if texts else ""
    return f"{texts[-2]} {last}" if len(texts) > 1 and word_count(last) < WORDS_ALONE else last


def as_plain_words(question: str) -> str:
    return " ".join(_OPERATORS.sub(" ", without_blocks(question)).split())
