"""What the OpenAI-compatible API of tests answers, when it is well and when it is not: pure functions.

Vectors have structure: texts that share words, or words of one topic, are near.
"""

import json
import re
from functools import lru_cache
from hashlib import shake_256
from math import nan, sqrt
from operator import add
from typing import Any

POISONS = ("short", "long", "shuffled", "same_index", "nan", "infinite", "zero", "words", "wrong_dimensions", "mixed",
           "garbled")  # fmt: skip
DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
TOPICS = (
    {"animal", "cat", "dog", "hound", "kitten", "pet", "puppy"},
    {"automobile", "car", "drive", "garage", "vehicle"},
    {"breakfast", "dinner", "eat", "food", "lunch", "meal"},
    {"flight", "holiday", "journey", "travel", "trip", "vacation"},
    {"bill", "invoice", "money", "pay", "payment", "price"},
    {"doctor", "hospital", "ill", "medicine", "physician", "sick"},
)
TOPIC_OF = {word: f"topic {number}" for number, words in enumerate(TOPICS) for word in words}


def what_is_wrong(texts: list[str], body: dict[str, Any], model: str) -> str:
    """The limits of the real API; tokens as pessimistic as they can be."""
    tokens = [len(re.findall(r"\w{1,4}|[^\w\s]", text)) for text in texts]
    if not texts or not all(texts) or len(texts) > 2048:
        return "invalid_input"
    if max(tokens) > 8192:
        return "context_length_exceeded"
    if sum(tokens) > 300_000:
        return "max_tokens_per_request"
    if "dimensions" in body and not model.startswith("text-embedding-3"):
        return "no_dimensions"
    return ""


def vector_of(text: str, dimensions: int) -> list[float]:
    """The sum of a fixed direction for each of its words, in which long words count for more."""
    total = [0.0] * dimensions
    for word in set(re.findall(r"\w+", text.lower())) or {text}:
        meaning = TOPIC_OF.get(word) or TOPIC_OF.get(word.removesuffix("s")) or word
        total = list(map(add, total, direction(meaning, min(len(word), 6), dimensions)))
    norm = sqrt(sum(x * x for x in total)) or 1.0
    return [x / norm for x in total]


@lru_cache(maxsize=2000)
def direction(word: str, weight: int, dimensions: int) -> tuple[float, ...]:
    digest = shake_256(word.encode()).digest(dimensions // 8 + 1)
    return tuple(float(weight if digest[i >> 3] >> (i & 7) & 1 else -weight) for i in range(dimensions))


def poisoned(poison: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = items[0]["embedding"]
    size = len(first)
    spoiled = {
        "nan": [nan, *first[1:]],
        "infinite": [float("inf"), *first[1:]],
        "zero": [0.0] * size,
        "words": ["many", "words"],
        "mixed": first[:-1],
    }
    if poison in spoiled:
        items[0]["embedding"] = spoiled[poison]
    for item in items:
        if poison == "wrong_dimensions":
            item["embedding"] = item["embedding"][:-1]
        elif poison == "same_index":
            item["index"] = len(items) - 1 if len(items) > 1 else 1
    if poison == "long":
        return [*items, {**items[0], "index": len(items)}]
    return {"short": items[:-1], "shuffled": items[::-1]}.get(poison, items)


def plain_answer(body: dict[str, Any]) -> Any:
    """Without a script: every new thing the user says is a fact, a summary counts, and anything else is an echo."""
    wanted = body.get("response_format", {}).get("json_schema", {}).get("name")
    if wanted not in ("memories", "summary"):
        return body["messages"][-1]["content"]
    messages = json.loads(body["messages"][1]["content"])["messages"]
    if wanted == "summary":
        return {"summary": f"{len(messages)} messages, the last one: {messages[-1]['text']}"}
    told = [message for message in messages if message["new"] and message["speaker"] == "user"]
    facts = [{"content": message["text"], "category": "fact", "importance": 5, "messageIndex": message["index"]}
             for message in told]  # fmt: skip
    return {"memories": facts}


def chat_answer(content: str, body: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "refusal": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
