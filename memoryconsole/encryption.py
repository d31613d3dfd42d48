"""A model field for text that is encrypted at rest: by the first of FIELD_ENCRYPTION_KEYS, readable by each of them."""

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.apps import apps
from django.conf import settings
from django.db import models

if TYPE_CHECKING:  # at run time Django's fields are not generic
    TextField = models.TextField[str, str]
else:
    TextField = models.TextField


class EncryptedTextField(TextField):
    description = "Text encrypted at rest"

    def get_prep_value(self, value: Any) -> Any:
        return _fernet().encrypt(value.encode()).decode() if value else ""

    def from_db_value(self, value: str | None, expression: object, connection: object) -> str:
        return _decrypted(_fernet(), value) if value else ""


def count_unreadable() -> int:
    """How many encrypted texts, in all tables, none of the keys can decrypt."""
    return sum(
        not text
        for model in apps.get_models()
        for field in model._meta.fields
        if isinstance(field, EncryptedTextField)
        for text in model._base_manager.exclude(**{field.name: ""}).values_list(field.name, flat=True)
    )


@lru_cache(maxsize=256)
def _decrypted(fernet: MultiFernet, value: str) -> str:
    """The text, or an empty one if it cannot be decrypted: after a key was lost the settings page must still open.

    Cached, because every request to an instance with a key of its own decrypts it.
    """
    try:
        return fernet.decrypt(value.encode()).decode()
    except InvalidToken:
        return ""


@cache
def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.FIELD_ENCRYPTION_KEYS])
