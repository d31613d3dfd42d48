"""Text encrypted at rest with the keys of FIELD_ENCRYPTION_KEYS: the first encrypts, every one decrypts."""

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
    """How many encrypted texts of all tables none of the keys decrypts."""
    return sum(
        not text
        for model in apps.get_models()
        for field in model._meta.fields
        if isinstance(field, EncryptedTextField)
        for text in model._base_manager.exclude(**{field.name: ""}).values_list(field.name, flat=True)
    )


@lru_cache(maxsize=256)
def _decrypted(fernet: MultiFernet, value: str) -> str:
    """An undecryptable value reads as empty: a lost key must not take the settings page down with it.

    Remembered, because every request of an instance with a key of its own reads it.
    """
    try:
        return fernet.decrypt(value.encode()).decode()
    except InvalidToken:
        return ""


@cache
def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.FIELD_ENCRYPTION_KEYS])
