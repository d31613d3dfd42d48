"""Roles and their aliases through the API, and the hint about another role"""

import pytest

from instances.models import Instance
from memories.vocabulary import ROLE_ALIASES, Role
from tests.api.calling import Caller
from tests.factories import make_memory

URL = "/api/v1/memories"


def save(api: Caller, content: str = "Text", **fields: object) -> dict:
    answer = api.post(URL, {"instanceId": "support-bot", "content": content, **fields})
    assert answer.status in (200, 201), answer.json
    return answer.json


WORDS = [(role.value, role.value) for role in Role] + [(word, role.value) for word, role in ROLE_ALIASES.items()]


@pytest.mark.parametrize(("word", "role"), WORDS)
def test_every_word_is_understood_everywhere(api: Caller, support: Instance, word: str, role: str) -> None:
    memory = save(api, role=word)["memory"]
    assert memory["role"] == role
    assert save(api, type=word.upper())["memory"]["role"] == role
    other = Role.LESSON if role != "lesson" else Role.CONTEXT
    api.patch(f"{URL}/{memory['id']}?instanceId=support-bot", {"role": other})
    changed = api.patch(f"{URL}/{memory['id']}?instanceId=support-bot", {"role": word})
    assert changed.json["memory"]["role"] == role
    assert api.get(f"{URL}?instanceId=support-bot&role={word}").json["total"] == 2
    bulk = api.post(f"{URL}/bulk", {"instanceId": "support-bot", "memories": [{"content": "x", "role": word}]})
    assert bulk.json["memories"][0]["role"] == role
    gone = api.post(f"{URL}/bulk-delete", {"instanceId": "support-bot", "filter": {"role": word}, "expected": 3})
    assert gone.json["deleted"] == 3


def test_unknown_words_are_named_with_what_is_allowed(api: Caller, support: Instance) -> None:
    answer = api.post(URL, {"instanceId": "support-bot", "content": "x", "role": "boss"})
    assert "“boss” is not a role. Choose one of: identity, lesson," in answer.errors["role"][0]
    assert "warning" in answer.errors["role"][0]
    assert "role" in api.get(f"{URL}?instanceId=support-bot&role=boss").errors


def test_a_hint_comes_with_the_answer(api: Caller, support: Instance) -> None:
    saved = save(api, "Never deploy on Fridays")
    assert saved["memory"]["role"] == "context"
    assert saved["hints"] == [{"field": "role", "value": "lesson", "reason": "“Never” sounds like a lesson."}]
    assert "hints" not in save(api, "Never deploy on Fridays", role="lesson")
    assert "hints" not in save(api, "Alice likes tea")


def test_a_hint_after_a_change(api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Wir haben uns für die kleine Lösung entschieden", role="lesson")
    answer = api.patch(f"{URL}/{memory.id}?instanceId=support-bot", {"pinned": True})
    assert [hint["value"] for hint in answer.json["hints"]] == ["decision"]
    answer = api.patch(f"{URL}/{memory.id}?instanceId=support-bot", {"role": "decision"})
    assert "hints" not in answer.json
