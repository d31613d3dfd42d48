"""What programs find out by themselves, through POST /api/v1/memories."""

from typing import Any

import pytest

from memories.models import Memory
from tests.api.calling import Answer, Caller

KEY = "learn:postgres-vacuum:3f9a0c12"
EVIDENCE = {
    "confidence": "medium",
    "corroborated": 2,
    "domains": ["example.com", "example.org"],
    "verified": "2026-05-12",
}


def save(api: Caller, **fields: Any) -> Answer:
    body = {
        "instanceId": "support-bot",
        "content": "VACUUM does not lock reads",
        "key": KEY,
        "role": "lesson",
        **fields,
    }
    return api.post("/api/v1/memories", body)


def test_an_entry_comes_back_as_it_was_saved(api: Caller) -> None:
    memory = save(api, evidence={**EVIDENCE, "query": "vacuum lock"}).json["memory"]
    assert (memory["key"], memory["role"]) == (KEY, "lesson")
    assert memory["evidence"] == {**EVIDENCE, "query": "vacuum lock"}
    assert (
        api.get(f"/api/v1/memories/{memory['id']}?instanceId=support-bot").json["memory"]["evidence"]
        == memory["evidence"]
    )


def test_domains_may_be_separated_by_commas_and_a_moment_is_a_day(api: Caller) -> None:
    evidence = {"domains": "example.com, example.org,example.com,", "verified": "2026-05-12T15:00:00Z"}
    memory = save(api, evidence=evidence).json["memory"]
    assert memory["evidence"] == {"domains": ["example.com", "example.org"], "verified": "2026-05-12"}


def test_a_claim_that_is_verified_again_supersedes(api: Caller) -> None:
    first = save(api, evidence=EVIDENCE, dedupe="reject").json["memory"]
    again = {**EVIDENCE, "confidence": "high", "corroborated": 4, "verified": "2026-08-01"}
    refused = save(api, evidence=again, dedupe="reject")
    assert (refused.status, refused.json["memory"]["id"]) == (409, first["id"])
    second = save(api, evidence=again, dedupe="create", supersedeReason="verified again").json["memory"]
    assert second["evidence"]["confidence"] == "high"
    old = api.get(f"/api/v1/memories/{first['id']}?instanceId=support-bot").json["memory"]
    assert (old["status"], old["supersededById"], old["supersedeReason"]) == (
        "superseded", second["id"], "verified again")  # fmt: skip
    updated = save(api, evidence=EVIDENCE, content="VACUUM does not lock writes", supersedeReason="corrected").json
    assert (updated["event"], updated["memory"]["id"]) == ("updated", second["id"])
    (version,) = api.get(f"/api/v1/memories/{second['id']}/history?instanceId=support-bot").json["versions"]
    assert (version["content"], version["reason"]) == ("VACUUM does not lock reads", "corrected")
    assert Memory.objects.filter(status="active").count() == 1


def test_a_claim_that_is_verified_again_word_for_word_keeps_what_spoke_for_it(api: Caller) -> None:
    first = save(api, evidence=EVIDENCE, confidence=0.5).json["memory"]
    again = {**EVIDENCE, "confidence": "high", "corroborated": 4, "verified": "2026-08-01"}
    save(api, evidence=again, confidence=0.9, supersedeReason="verified again")
    url = f"/api/v1/memories/{first['id']}"
    (version,) = api.get(f"{url}/history?instanceId=support-bot").json["versions"]
    assert (version["evidence"], version["confidence"], version["reason"]) == (EVIDENCE, 0.5, "verified again")
    restored = api.post(f"{url}/restore", {"instanceId": "support-bot", "version": 1}).json["memory"]
    assert (restored["evidence"], restored["confidence"]) == (EVIDENCE, 0.5)


@pytest.mark.parametrize(
    "key", ["learn:", "learn:topic", "learn:Topic:3f9a0c12", "learn:a--b:3f9a0c12", "learn:topic:xyz123", "learn:t:3f9"]
)
def test_a_key_that_is_no_learning_entrys_is_refused(key: str, api: Caller) -> None:
    assert list(save(api, key=key).errors) == ["key"]
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    "evidence",
    [
        {"confidence": "sure"},
        {"corroborated": "many"},
        {"corroborated": -1},
        {"corroborated": True},
        {"domains": 5},
        {"domains": ["a", 5]},
        {"verified": "yesterday"},
        {"verified": "2026-13-01"},
    ],
)
def test_evidence_that_makes_no_sense_is_refused(evidence: dict[str, Any], api: Caller) -> None:
    assert list(save(api, evidence=evidence).errors) == ["evidence"]
