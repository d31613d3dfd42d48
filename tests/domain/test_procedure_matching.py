"""Matching procedures by words and by meaning; none if none fits."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from instances.models import Instance
from instances.store import InstanceChanges, change_instance
from memories import jobs
from memories.embedding import embedder
from memories.embedding.embedder import Unavailable
from memories.models import ProcedureVector
from memories.procedures import vectors
from memories.procedures.matching import matches
from memories.procedures.store import ProcedureChanges, change_procedure, count_use
from memories.procedures.vectors import embed_procedures
from tests.factories import make_instance, make_memory, make_procedure, scope_of
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.django_db

REFUND = ("Refund an order", "the customer wants their money back or returns something they ordered")
INVOICE = ("Send an invoice", "the customer asks for a bill, a receipt or an invoice")
OUTAGE = ("Report an outage", "the service is down, nothing loads, errors everywhere")
RESET = ("Reset a password", "the customer cannot sign in or forgot the password")


@pytest.fixture(autouse=True)
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "ATTEMPTS", 1)


def learn(instance: Instance, *known: tuple[str, str]) -> None:
    for name, trigger in known:
        make_procedure(instance, name, trigger=trigger)


def work(instance: Instance) -> None:
    """Embed as the worker does."""
    jobs.embed_memories(str(instance.id))


def names(instance: Instance, text: str, **options: int) -> list[str]:
    return [match.procedure.name for match in matches(scope_of(instance), text, **options)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("I would like a refund for order 5512", "Refund an order"),
        ("Alice wants her money back", "Refund an order"),
        ("refund?", "Refund an order"),
        ("Could you send me the receipts of March, please?", "Send an invoice"),
        ("Your service gives me nothing but errors", "Report an outage"),
        ("How do I reset my password", "Reset a password"),
    ],
)
def test_words_in_any_form(bot: Instance, text: str, name: str) -> None:
    learn(bot, REFUND, INVOICE, OUTAGE, RESET)
    assert names(bot, text)[0] == name


@pytest.mark.parametrize(
    "text",
    [
        "What is the weather like in Lisbon?",
        "The customer is very happy with us today",
        "Thank you, that was all!",
        "My dog likes long walks on the beach",
        "",
        "?!",
        "the and of",
        "x" * 5000,
    ],
)
@pytest.mark.parametrize("embedder", ["openai", "offline"])
def test_unrelated_texts_match_nothing(text: str, embedder: str) -> None:
    bot = make_instance(embedder=embedder)
    learn(bot, REFUND, INVOICE, OUTAGE, RESET)
    work(bot)
    assert names(bot, text) == []


def test_a_word_that_every_trigger_has_matches_nothing(bot: Instance) -> None:
    for n in range(30):
        make_procedure(bot, f"Way {n}", trigger=f"the customer asks for thing{n}")
    assert names(bot, "a customer asks about tomorrow") == []
    assert names(bot, "a customer asks for thing7") == ["Way 7"]


def test_in_the_language_of_the_instance() -> None:
    bot = make_instance(language="german")
    learn(bot, ("Rechnung senden", "Kunden fragen nach Rechnungen"))
    assert names(bot, "Wo ist meine Rechnung?") == ["Rechnung senden"]
    change_instance(scope_of(bot), InstanceChanges(language="simple"))
    jobs.use_language_now(str(bot.id))
    bot.refresh_from_db()
    assert matches(scope_of(bot), "Rechnung")[0].matched == ["rechnung"]


def test_scripts_without_spaces(bot: Instance) -> None:
    learn(bot, ("退款流程", "客户要求退款"), ("开具发票", "客户需要发票"))
    assert names(bot, "我想申请退款") == ["退款流程"]


def test_ties_go_to_the_most_used_and_limits_hold(bot: Instance) -> None:
    learn(bot, *((f"Refund {letter}", "refund") for letter in "abcd"))
    found = names(bot, "refund", limit=10)
    assert len(found) == 4
    assert len(names(bot, "refund")) == 3
    assert names(bot, "refund", limit=1) == found[:1]


def test_equal_scores_are_broken_by_use() -> None:
    bot = make_instance(embedder="offline")
    first = make_procedure(bot, "Alpha", trigger="zebra")
    make_procedure(bot, "Beta", trigger="giraffe")
    count_use(scope_of(bot), first.id)
    assert names(bot, "zebra giraffe", limit=1) == ["Alpha"]


def test_by_meaning(bot: Instance, openai: OpenAIServer) -> None:
    learn(bot, ("Feed the dog", "the animal is hungry"), OUTAGE)
    work(bot)
    match, *others = matches(scope_of(bot), "my puppy")
    assert (match.procedure.name, match.matched, others) == ("Feed the dog", [], [])
    assert match.similarity is not None
    assert match.similarity > 0.35


def test_both_lists_add_up(bot: Instance, openai: OpenAIServer) -> None:
    learn(bot, ("Feed the dog", "the animal is hungry"))
    work(bot)
    match = matches(scope_of(bot), "the dog is hungry")[0]
    assert match.matched == ["dog", "hungri"]
    assert match.score == pytest.approx(2 / 61)


def test_words_alone_while_the_embedder_does_not_answer(bot: Instance, openai: OpenAIServer) -> None:
    learn(bot, REFUND)
    work(bot)
    openai.fail("server_error")
    match = matches(scope_of(bot), "a refund please")[0]
    assert (match.procedure.name, match.similarity) == ("Refund an order", None)


def test_none_costs_one_statement_and_no_vector(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "Something")
    work(bot)
    asked = len(openai.requests)
    with CaptureQueriesContext(connection) as captured:
        assert matches(scope := scope_of(bot), "a refund please") == []
    assert len(captured) == 2, "opening the instance, and one look"
    assert len(openai.requests) == asked
    assert scope.instance.embedding_model


def test_vectors_follow_the_text(bot: Instance, openai: OpenAIServer) -> None:
    procedure = make_procedure(bot, "Feed the dog")
    work(bot)
    assert ProcedureVector.objects.count() == 1
    change_procedure(scope_of(bot), procedure.id, ProcedureChanges(steps=["Other"]))
    assert ProcedureVector.objects.count() == 1
    change_procedure(scope_of(bot), procedure.id, ProcedureChanges(name="Water the plants"))
    assert not ProcedureVector.objects.exists()
    work(bot)
    assert openai.embedded()[-1] == "Water the plants"
    assert embed_procedures(scope_of(bot)) == 0


def test_a_change_while_its_text_is_away(bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    procedure = make_procedure(bot, "Feed the dog")
    ask = vectors.embed_texts

    def meanwhile(instance: Instance, texts: Any) -> Any:
        answer = ask(instance, texts)
        change_procedure(scope_of(bot), procedure.id, ProcedureChanges(name="Water the plants"))
        return answer

    monkeypatch.setattr(vectors, "embed_texts", meanwhile)
    embed_procedures(scope_of(bot))
    assert not ProcedureVector.objects.exists()


def test_one_that_is_refused_does_not_hold_up_the_others(
    bot: Instance, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(bot, REFUND, ("Unspeakable", ""), OUTAGE)
    ask = embedder._request

    def refuse(source: Any, texts: list[str], seconds: float) -> Any:
        if any("Unspeakable" in text for text in texts):
            raise Unavailable("refused", "The embeddings API refused the request with status 400.")
        return ask(source, texts, seconds)

    monkeypatch.setattr(embedder, "_request", refuse)
    assert embed_procedures(scope_of(bot)) == 2


def test_vectors_of_different_models_are_never_compared(openai: OpenAIServer) -> None:
    bot = make_instance(embedder="offline")
    learn(bot, ("Feed the dog", "the animal is hungry"))
    make_memory(bot, "Something")
    work(bot)
    change_instance(scope_of(bot), InstanceChanges(embedder="openai"))
    embed_procedures(scope_of(bot))
    assert ProcedureVector.objects.count() == 2, "one for the model in use, one for the next"
    asked = len(openai.requests)
    assert names(bot, "hungry dogs") == ["Feed the dog"]
    assert len(openai.requests) == asked, "the offline vectors are compared with an offline vector"
    work(bot)
    assert ProcedureVector.objects.count() == 1
    assert names(bot, "my puppy") == ["Feed the dog"]


def test_other_instances_see_nothing(bot: Instance) -> None:
    learn(bot, REFUND)
    assert names(make_instance(), "a refund please") == []
