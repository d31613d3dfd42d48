"""Which API an instance uses: its own OpenAI key first, then the server's Azure, then the server's OpenAI key."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from django.conf import settings

from instances.models import Embedder, Instance

if TYPE_CHECKING:
    from openai import OpenAI

TEST_TIMEOUT = 8.0


@dataclass(frozen=True, slots=True)
class Provider:
    kind: Literal["openai", "azure"]
    api_key: str = field(repr=False)
    endpoint: str

    @property
    def chat_model(self) -> str:
        """The model that extracts and summarises; empty if the server names no Azure deployment for it."""
        return settings.AZURE_OPENAI_CHAT_DEPLOYMENT if self.kind == "azure" else settings.FAST_MODEL

    def client(self, *, timeout: float) -> "OpenAI":
        """A client without retries; callers have their own. The library is imported here: it takes a second to load."""
        from openai import AzureOpenAI, OpenAI

        if self.kind == "azure":
            return AzureOpenAI(
                api_key=self.api_key,
                azure_endpoint=self.endpoint,
                api_version=settings.AZURE_OPENAI_API_VERSION,
                timeout=timeout,
                max_retries=0,
            )
        return OpenAI(api_key=self.api_key, base_url=self.endpoint or None, timeout=timeout, max_retries=0)


def provider_for(instance: Instance) -> Provider | None:
    azure = bool(settings.AZURE_OPENAI_ENDPOINT and settings.AZURE_OPENAI_API_KEY)
    if instance.openai_key and instance.embedder != Embedder.AZURE:
        return Provider("openai", instance.openai_key, settings.OPENAI_BASE_URL)
    if azure:
        return Provider("azure", settings.AZURE_OPENAI_API_KEY, settings.AZURE_OPENAI_ENDPOINT)
    if settings.OPENAI_API_KEY and instance.embedder != Embedder.AZURE:
        return Provider("openai", settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL)
    return None


def why_key_fails(key: str) -> str:
    """Try the key; an empty string if it works, or the reason for the person who entered it."""
    import openai

    try:
        Provider("openai", key, settings.OPENAI_BASE_URL).client(timeout=TEST_TIMEOUT).models.list()
    except openai.AuthenticationError:
        return "The API does not accept this key."
    except openai.PermissionDeniedError:
        return "The API knows this key but does not let it list models."
    except openai.RateLimitError:
        return "The key is right, but its quota is used up or it is being rate limited."
    except openai.APITimeoutError:
        return f"The API did not answer within {TEST_TIMEOUT:.0f} seconds."
    except openai.APIConnectionError:
        return "The API cannot be reached from this server."
    except (openai.OpenAIError, ValueError) as error:
        return f"The API answered with an error ({type(error).__name__})."
    return ""
