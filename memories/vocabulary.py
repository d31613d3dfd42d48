"""The fixed values of a memory's fields, and the aliases accepted for them.

Aliases are resolved once, where input is read (`category_named` and `role_named`).
"""

from collections.abc import Sequence

from django.db.models import TextChoices

from memoryconsole.inputs import is_quotable


class Category(TextChoices):
    """What a memory is about."""

    GENERAL = "general", "General"
    PREFERENCE = "preference", "Preference"
    FACT = "fact", "Fact"
    EVENT = "event", "Event"
    RELATIONSHIP = "relationship", "Relationship"
    DECISION = "decision", "Decision"


class Role(TextChoices):
    """How prompts use a memory."""

    IDENTITY = "identity", "Identity"
    LESSON = "lesson", "Lesson"
    DECISION = "decision", "Decision"
    CONTEXT = "context", "Context"
    REFERENCE = "reference", "Reference"
    HISTORICAL = "historical", "Historical"


class Visibility(TextChoices):
    """How far beyond its own instance a memory may be read."""

    PRIVATE = "private", "Private: its owner only"
    INSTANCE = "instance", "Instance"
    TEAM = "team", "Team"
    ORG = "org", "Organisation"


class Status(TextChoices):
    ACTIVE = "active", "Active"
    SUPERSEDED = "superseded", "Superseded"


class Review(TextChoices):
    """Whether a person still has to look at an extracted memory before it is used."""

    APPROVED = "approved", "Approved"
    PENDING = "pending", "Waiting for review"


class EmbeddingState(TextChoices):
    READY = "ready", "Ready"
    PENDING = "pending", "Pending"
    FAILED = "failed", "Failed"


ROLE_ALIASES = {
    "core": Role.IDENTITY,
    "self": Role.IDENTITY,
    "warning": Role.LESSON,
    "insight": Role.LESSON,
    "learning": Role.LESSON,
    "skill-note": Role.LESSON,
    "commitment": Role.DECISION,
    "choice": Role.DECISION,
    "active": Role.CONTEXT,
    "background": Role.CONTEXT,
    "pointer": Role.REFERENCE,
    "link": Role.REFERENCE,
    "archive": Role.HISTORICAL,
    "past": Role.HISTORICAL,
}

# As a category, this alias also implies a role.
CATEGORY_ALIASES = {"skill-note": (Category.GENERAL, Role.LESSON)}


# `Category.values` is computed on every access, which would slow down bulk saves.
_CATEGORIES = {category.value: category for category in Category}
_ROLES = {role.value: role for role in Role}


def category_named(word: str) -> tuple[Category, Role | None]:
    """The category a word stands for, and the role it implies, if any."""
    word = word.strip().lower()
    if word in CATEGORY_ALIASES:
        return CATEGORY_ALIASES[word]
    if word in _CATEGORIES:
        return _CATEGORIES[word], None
    raise _unknown(word, "category", Category.values)


def role_named(word: str) -> Role:
    word = word.strip().lower()
    if word in ROLE_ALIASES:
        return ROLE_ALIASES[word]
    if word in _ROLES:
        return _ROLES[word]
    raise _unknown(word, "role", [*Role.values, *ROLE_ALIASES])


def _unknown(word: str, what: str, known: Sequence[str]) -> ValueError:
    named = f"“{word}”" if is_quotable(word) else "This"
    return ValueError(f"{named} is not a {what}. Choose one of: {', '.join(known)}.")
