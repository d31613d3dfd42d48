"""Vectors from an API that may be slow, down, wrong or out of patience: the real client against a local openai."""

import logging
import math
import time
from array import array
from collections.abc import Callable, Sequence
from email.utils import formatdate
from typing import Any

import pytest
from django.db import connection, transaction

from memories.embedding import embedder
from memories.embedding.embedder import DIMENSIONS, embed_query, embed_texts, model_of
from tests.domain.asking import OTHER_KEY, bot, query_code, reason_of, texts_code
from tests.openai_answers import POISONS
from tests.openai_server import GOOD_KEY, OpenAIServer


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(one, other, strict=True))


# Which model


@pytest.mark.parametrize(
    ("name", "dimensions"),
    [
        ("text-embedding-3-small", None),
        ("text-embedding-3-large", 1536),
        ("text-embedding-ada-002", None),
        ("nomic-1536", None),
        ("minilm-384", None),
    ],
)
def test_each_model_is_asked_in_its_own_way(
    openai: OpenAIServer, settings: Any, name: str, dimensions: int | None
) -> None:
    settings.EMBEDDING_MODEL = name
    near, same, far = embed_texts(bot(), ["Alice drinks green tea", "green tea", "The garage is closed"])

    assert model_of(bot()) == name
    assert [len(vector) for vector in (near, same, far)] == [DIMENSIONS] * 3
    assert all(math.hypot(*vector) == pytest.approx(1.0, abs=1e-3) for vector in (near, same, far))
    assert cosine(near, same) > 0.5 > 0.3 > cosine(near, far)
    assert cosine(embed_query(bot(), "green tea"), same) == pytest.approx(1.0, abs=1e-3)
    assert openai.requests[0].body["model"] == name
    assert openai.requests[0].body.get("dimensions") == dimensions
    assert openai.requests[0].body["encoding_format"] == "base64"


@pytest.mark.parametrize(("deployment", "dimensions"), [("our-embeddings", None), ("text-embedding-3-large", 1536)])
def test_azure_is_asked_by_deployment(
    openai: OpenAIServer, settings: Any, deployment: str, dimensions: int | None
) -> None:
    settings.AZURE_OPENAI_ENDPOINT = openai.endpoint
    settings.AZURE_OPENAI_API_KEY = "azure-key"
    settings.AZURE_OPENAI_EMBEDDING_DEPLOYMENT = deployment

    assert len(embed_texts(bot(), ["tea"])[0]) == len(embed_query(bot(embedder="azure"), "tea")) == DIMENSIONS
    assert model_of(bot()) == model_of(bot(embedder="azure")) == f"azure:{deployment}"
    request = openai.requests[0]
    assert request.path == f"/openai/deployments/{deployment}/embeddings"
    assert request.query == {"api-version": ["2024-10-21"]}
    assert (request.key, request.body.get("dimensions")) == ("azure-key", dimensions)


def test_the_instances_own_key_comes_first(openai: OpenAIServer, settings: Any) -> None:
    settings.AZURE_OPENAI_ENDPOINT = openai.endpoint
    settings.AZURE_OPENAI_API_KEY = "azure-key"
    embed_texts(bot(openai_key=OTHER_KEY), ["tea"])
    assert [request.key for request in openai.requests] == [OTHER_KEY]


def test_without_a_key_nobody_is_asked(openai: OpenAIServer, settings: Any) -> None:
    settings.OPENAI_API_KEY = ""
    assert model_of(bot()) == model_of(bot(embedder="azure")) == ""
    assert query_code() == texts_code() == "no_key"
    assert query_code(embedder="azure") == texts_code(embedder="azure") == "no_azure"
    settings.AZURE_OPENAI_ENDPOINT, settings.AZURE_OPENAI_API_KEY = openai.endpoint, "azure-key"
    assert query_code() == texts_code(embedder="azure") == "no_azure"
    assert model_of(bot()) == ""
    assert openai.requests == []


def test_the_offline_embedder_needs_no_network(openai: OpenAIServer) -> None:
    offline = bot(embedder="offline", openai_key=GOOD_KEY)
    assert model_of(offline) == "offline-hash-1"
    assert embed_texts(offline, ["tea", ""]) == [array("f", embed_query(offline, text)) for text in ("tea", "")]
    assert len(embed_query(offline, "tea")) == DIMENSIONS
    assert openai.requests == []


# Batches


def test_many_texts_are_asked_in_batches_and_come_back_in_order(openai: OpenAIServer) -> None:
    texts = [f"text number {number}" for number in range(600)]
    vectors = embed_texts(bot(), texts)

    assert [len(request.texts) for request in openai.requests] == [256, 256, 88]
    assert openai.embedded() == texts
    for number in (0, 255, 256, 599):
        assert cosine(vectors[number], embed_query(bot(), texts[number])) == pytest.approx(1.0, abs=1e-3)
    assert embed_texts(bot(), []) == []


def test_long_texts_share_a_request_only_up_to_its_tokens(openai: OpenAIServer) -> None:
    embed_texts(bot(), ["word " * 10_000] * 40)
    assert [len(request.texts) for request in openai.requests] == [31, 9]
    assert {len(text) for text in openai.embedded()} == {embedder.TEXT_BYTES}


def test_a_text_that_is_longer_than_it_seemed_is_cut_again(openai: OpenAIServer) -> None:
    embed_texts(bot(), ["tea", "!?" * 20_000])
    assert [len(text) for text in openai.embedded()] == [3, embedder.TEXT_BYTES, 3, embedder.SAFE_BYTES]


@pytest.mark.parametrize("text", ["", " \n ", "\0", "\ud800", "é" * 30_000, "🎉", "' \" \\ % <->", "x" * 10_000])
def test_any_text_can_be_sent(openai: OpenAIServer, text: str) -> None:
    assert len(embed_texts(bot(), [text])[0]) == len(embed_query(bot(), text)) == DIMENSIONS


# Answers that are wrong


@pytest.mark.parametrize(
    "fault",
    [*(poison for poison in POISONS if poison != "shuffled"), "bad_json", "html", "nonsense"],
)
@pytest.mark.parametrize("knows_base64", [True, False], ids=["base64", "lists"])
def test_a_poisoned_answer_is_refused(openai: OpenAIServer, fault: str, knows_base64: bool) -> None:
    openai.knows_base64 = knows_base64
    openai.fail(fault)
    assert texts_code() == "bad_answer"
    assert len(openai.requests) == embedder.ATTEMPTS
    assert query_code() == "bad_answer"
    assert len(openai.requests) == embedder.ATTEMPTS + 2

    openai.recover()
    assert len(embed_texts(bot(), ["tea"])[0]) == len(embed_query(bot(), "tea")) == DIMENSIONS


def test_a_shuffled_answer_is_put_in_order(openai: OpenAIServer) -> None:
    texts = ["tea", "coffee", "milk"]
    right = embed_texts(bot(), texts)
    for openai.knows_base64 in (True, False):
        openai.fail("shuffled", times=1)
        assert embed_texts(bot(), texts) == right


def test_a_server_that_answers_with_lists_gives_the_same_vectors(openai: OpenAIServer) -> None:
    encoded, query = embed_texts(bot(), ["green tea", "coffee"]), embed_query(bot(), "green tea")
    embedder.forget()
    openai.knows_base64 = False
    assert embed_texts(bot(), ["green tea", "coffee"]) == encoded
    assert embed_query(bot(), "green tea") == query


def test_somebodys_own_model_keeps_its_dimensions(openai: OpenAIServer, settings: Any) -> None:
    settings.EMBEDDING_MODEL = "minilm-384"
    assert embed_query(bot(), "tea")[384:] == [0.0] * (DIMENSIONS - 384)
    openai.fail("wrong_dimensions")
    problem = reason_of(lambda: embed_texts(bot(), ["tea"]))
    assert (problem.code, "383 dimensions instead of 384" in problem.reason) == ("bad_answer", True)


def test_vectors_that_are_too_long_are_refused(openai: OpenAIServer, settings: Any) -> None:
    settings.EMBEDDING_MODEL = "giant-4096"
    assert "4096 dimensions instead of 1536" in reason_of(lambda: embed_texts(bot(), ["tea"])).reason


# Answers that do not come


@pytest.mark.parametrize(
    ("fault", "code", "attempts", "quick_attempts"),
    [
        ("unauthorized", "unauthorized", 1, 1),
        ("forbidden", "unauthorized", 1, 1),
        ("not_found", "unknown_model", 1, 1),
        ("quota", "rate_limited", 1, 1),
        ("rate_limited", "rate_limited", 4, 1),
        ("server_error", "server_error", 4, 2),
        ("reset", "unreachable", 4, 2),
        ("cut_off", "unreachable", 4, 2),
        ("hang", "timeout", 4, 1),
        ("slow", "timeout", 4, 1),
        ("drip", "timeout", 4, 1),
    ],
)
@pytest.mark.usefixtures("short_times")
def test_faults_are_named_and_cost_bounded_time(
    openai: OpenAIServer, fault: str, code: str, attempts: int, quick_attempts: int
) -> None:
    openai.fail(fault, seconds=9)
    started = time.monotonic()
    assert texts_code() == code
    assert time.monotonic() - started < 4
    assert len(openai.requests) == attempts

    started = time.monotonic()
    assert query_code() == code
    assert time.monotonic() - started < 1.2
    assert len(openai.requests) == attempts + quick_attempts


def test_nobody_listening_is_unreachable(settings: Any, openai: OpenAIServer) -> None:
    for address in ("http://127.0.0.1:1/v1", "http://no-such-host.invalid/v1", "ftp://127.0.0.1/v1", "nonsense"):
        settings.OPENAI_BASE_URL = address
        assert query_code() == texts_code() == "unreachable"


@pytest.mark.parametrize("fault", ["rate_limited", "server_error", "reset", "bad_json", "short", "cut_off"])
def test_what_passes_is_tried_again(openai: OpenAIServer, fault: str) -> None:
    openai.fail(fault, times=3)
    assert len(embed_texts(bot(), ["tea"])) == 1
    if fault != "rate_limited":
        openai.fail(fault, times=1)
        assert len(embed_query(bot(), "tea")) == DIMENSIONS


def test_retry_after_is_waited_for(openai: OpenAIServer) -> None:
    openai.fail("rate_limited", times=1, retry_after="0.3")
    started = time.monotonic()
    embed_texts(bot(), ["tea"])
    assert 0.3 <= time.monotonic() - started < 1.5


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("90", 90),
        ("1e9", 600),
        (formatdate(time.time() + 10_000, usegmt=True), 600),
    ],
    ids=["seconds", "too many seconds", "date"],
)
def test_a_long_retry_after_is_left_to_the_caller(openai: OpenAIServer, header: str, seconds: float) -> None:
    openai.fail("rate_limited", retry_after=header)
    assert reason_of(lambda: embed_texts(bot(), ["tea"])).retry_after == pytest.approx(seconds, abs=2)
    assert reason_of(lambda: embed_query(bot(), "tea")).retry_after == pytest.approx(seconds, abs=2)
    assert len(openai.requests) == 2


@pytest.mark.parametrize("header", ["-5", "nan", "inf", "soon", "Mon, 99 Foo", "²", formatdate(0, usegmt=True)])
def test_a_retry_after_that_makes_no_sense_is_no_trouble(openai: OpenAIServer, header: str) -> None:
    openai.fail("rate_limited", times=1, retry_after=header)
    assert len(embed_texts(bot(), ["tea"])) == 1


# Around it


@pytest.mark.django_db
def test_no_transaction_is_open_while_asking(openai: OpenAIServer) -> None:
    with transaction.atomic():
        for ask in (lambda: embed_query(bot(), "tea"), lambda: embed_texts(bot(), ["tea"])):
            with pytest.raises(RuntimeError, match="never inside one"):
                ask()
        assert len(embed_texts(bot(embedder="offline"), ["tea"])) == 1
    assert openai.requests == []
    assert len(embed_texts(bot(), ["tea"])) == len([embed_query(bot(), "tea")]) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("ask", [lambda: embed_query(bot(), "tea"), lambda: embed_texts(bot(), ["tea"])])
def test_no_connection_is_held_while_asking(openai: OpenAIServer, ask: Callable[[], object]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert connection.connection is not None
    ask()
    assert connection.connection is None


def test_keys_and_texts_are_not_logged(openai: OpenAIServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="memories"):
        embed_query(bot(), "a secret thought")
        openai.fail("server_error")
        for number in range(4):
            problem = reason_of(lambda: embed_query(bot(), "another secret thought"))
            assert "secret" not in problem.reason, number
    assert "secret" not in caplog.text
    assert GOOD_KEY not in caplog.text
