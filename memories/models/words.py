"""A field and database functions for keyword search."""

from typing import TYPE_CHECKING

from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Func

if TYPE_CHECKING:  # at run time Django's fields are not generic
    TextualField = models.Field[str, str]
else:
    TextualField = models.Field


class Language(TextualField):
    """A text-search configuration, stored as PostgreSQL's own type so that a generated column may use it."""

    def db_type(self, connection: object) -> str:
        return "regconfig"


class Words(Func):
    """The search vector of a chunk. A migration makes the function; queries are split by the same one."""

    function = "memories_words"
    output_field = SearchVectorField()


class FirstWord(Func):
    """The first word of a text in lower case; usually its subject."""

    function = "memories_first_word"
    output_field = models.TextField()


class IsTurn(Func):
    """Whether a text is a turn of a conversation ("Name: …")."""

    function = "memories_is_turn"
    output_field = models.BooleanField()


class IsQuestion(Func):
    function = "memories_is_question"
    output_field = models.BooleanField()
