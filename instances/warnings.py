"""Warnings about the set-up of an instance, shown before its effects surprise anybody."""

from dataclasses import dataclass

from instances.models import Embedder, Instance
from instances.providers import provider_for


@dataclass(frozen=True, slots=True)
class Warning:
    code: str
    title: str
    message: str
    link: str


NO_CHAT = (
    "Memory is on, but this server names no Azure OpenAI deployment for chat (AZURE_OPENAI_CHAT_DEPLOYMENT): facts are "
    "not extracted from conversations."
)
UNREADABLE = (
    "This instance's own OpenAI key, ••••{}, cannot be read with this server's FIELD_ENCRYPTION_KEYS and is not used. "
    "Bring back the encryption key it was stored with, or enter it again."
)


def warnings_for(instance: Instance) -> list[Warning]:
    return [*_unreadable_key(instance), *_no_model(instance)]


def _unreadable_key(instance: Instance) -> list[Warning]:
    if not instance.has_unreadable_key:
        return []
    message = UNREADABLE.format(instance.openai_key_last4)
    return [Warning("unreadable_key", "Unreadable OpenAI key", message, _setting(instance, "openai-key"))]


def _no_model(instance: Instance) -> list[Warning]:
    provider = provider_for(instance)
    if not instance.memory_enabled or (provider and provider.chat_model):
        return []
    if provider:
        return [Warning("no_chat_deployment", "No deployment for chat", NO_CHAT, _setting(instance, "openai-key"))]
    return [Warning("no_openai_key", "No OpenAI key", _no_key(instance), way_to_key(instance))]


def way_to_key(instance: Instance) -> str:
    """The setting to change if a key is missing or refused: with Azure, whose key is the server's, the embedder."""
    return _setting(instance, "embedder" if instance.embedder == Embedder.AZURE else "openai-key")


def _setting(instance: Instance, field: str) -> str:
    return f"/instances/{instance.slug}/settings#{field}"


def _no_key(instance: Instance) -> str:
    if instance.embedder == Embedder.AZURE:
        missing = "Memory is on, but this server has no Azure OpenAI endpoint and key."
    else:
        missing = "Memory is on, but no OpenAI or Azure key reaches this instance."
    if instance.embedder == Embedder.OFFLINE:
        return f"{missing} Search uses the offline embedder; facts are not extracted from conversations."
    return f"{missing} Search finds words but not meaning, and facts are not extracted from conversations."
