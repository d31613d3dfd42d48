"""Helpers for tests of an embeddings API that fails."""

from collections.abc import Callable
from typing import Any

import pytest

from instances.models import Instance
from memories.asking import Unavailable
from memories.embedding.embedder import embed_query, embed_texts

OTHER_KEY = "sk-other-0123456789-wxyz"


def bot(**fields: Any) -> Instance:
    return Instance(slug="support-bot", **fields)


def reason_of(ask: Callable[[], object]) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        ask()
    return caught.value


def code_of(ask: Callable[[], object]) -> str:
    return reason_of(ask).code


def query_code(text: str = "tea", **fields: Any) -> str:
    return code_of(lambda: embed_query(bot(**fields), text))


def texts_code(*texts: str, **fields: Any) -> str:
    return code_of(lambda: embed_texts(bot(**fields), texts or ("tea", "coffee", "milk")))
