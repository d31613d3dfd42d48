"""The real worker learns from conversations while it is killed and the language model is not well: nothing is lost,
nothing is there twice, and every failure can be seen."""

import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.openai_server import MOODS, OpenAIServer
from tests.start.console import Console, manage, wait_until

# A dead worker's jobs are taken up when it has not been heard of for half a minute.
TAKEN_UP = 120
TALKS, TURNS = 6, 4


@pytest.fixture(scope="module")
def console(console_with_openai: Console) -> Console:
    return console_with_openai


@pytest.fixture(scope="module")
def key(console: Console) -> str:
    assert manage("createinstance", "new-bot", data_dir=console.data_dir).returncode == 0
    return manage("createapikey", "--instance", "new-bot", data_dir=console.data_dir).stdout.strip()


class Talker:
    def __init__(self, console: Console, key: str) -> None:
        self.console, self.key = console, key

    def get(self, path: str, query: str = "") -> Any:
        status, answer = self.console.get(f"/api/v1/{path}?instanceId=new-bot{query}", self.key)
        assert status == 200, path
        return answer

    def post(self, path: str, **body: Any) -> Any:
        status, answer = self.console.get(f"/api/v1/{path}", self.key, {"instanceId": "new-bot", **body})
        assert status in (200, 201, 202), path
        return answer

    def talk(self, number: int) -> str:
        id: str = self.post("conversations", externalId=f"talk-{number}", userId=f"user{number}")["conversation"]["id"]
        for turn in range(TURNS):
            for role, text in (("user", fact(number, turn)), ("assistant", "Noted.")):
                message = {"role": role, "content": text, "externalId": f"{turn} {role}"}
                self.post(f"conversations/{id}/messages", messages=[message])
        return id

    def unfinished(self) -> int:
        return sum(self.get("jobs", f"&state={state}")["total"] for state in ("queued", "running"))


def fact(number: int, turn: int) -> str:
    """Every third one has been said before."""
    words = ("apricots bridges", "candles drums", "engines forests", "gardens harbours", "islands jackets",
             "kettles ladders", "mirrors notebooks", "oceans pillows")  # fmt: skip
    said = turn - 2 if turn % 3 == 2 else turn
    return f"{words[number % 4]} and {words[4 + said]} matter to user{number}"


@pytest.fixture
def talker(console: Console, key: str) -> Talker:
    return Talker(console, key)


def test_a_fact_is_found_seconds_after_it_was_said(talker: Talker) -> None:
    id = talker.post("conversations", userId="dora")["conversation"]["id"]
    messages = [
        {"role": "user", "content": "The kitten sleeps in the hall"},
        {"role": "assistant", "content": "Sweet."},
    ]
    said = talker.post(f"conversations/{id}/messages", messages=messages)["messages"]
    wait_until(lambda: talker.get("memories", "&search=kitten")["total"] == 1, 20)
    (memory,) = talker.get("memories", "&search=kitten")["memories"]
    assert (memory["source"], memory["owner"], memory["embedding"]) == ("auto", "dora", "ready")
    assert (memory["sourceConversationId"], memory["sourceMessageIds"]) == (id, [said[0]["id"]])
    wait_until(lambda: talker.unfinished() == 0)
    (job,) = talker.get("jobs", "&kind=extract-memories")["jobs"]
    assert (job["state"], job["conversationId"], job["result"]["created"], job["attempts"]) == ("done", id, 1, 1)


def test_nothing_is_lost_or_doubled_by_kill_9_and_a_moody_model(talker: Talker, openai: OpenAIServer) -> None:
    openai.latency = 0.1
    openai.fail_sometimes(0.2, *MOODS, path="/chat/completions", seed=4)
    with ThreadPoolExecutor(3) as clients:
        talks = clients.map(talker.talk, range(TALKS))
        wait_until(lambda: len(openai.chats()) > 3)
        (worker,) = talker.console.children("worker")
        os.kill(worker, signal.SIGKILL)
        ids = list(talks)
    wait_until(lambda: talker.unfinished() == 0, TAKEN_UP)
    openai.recover()
    failed = talker.get("jobs", "&state=failed&limit=100")["jobs"]
    assert all(job["error"] for job in failed)
    for id in {job["conversationId"] for job in failed}:
        talker.post(f"conversations/{id}/messages", messages=[{"role": "assistant", "content": "Anything else?"}])
    wait_until(lambda: talker.unfinished() == 0, TAKEN_UP)
    for number, id in enumerate(ids):
        messages = [message for message in talker.get(f"conversations/{id}")["messages"] if message["role"] == "user"]
        assert [message["content"] for message in messages] == [fact(number, turn) for turn in range(TURNS)]
    memories = talker.get("memories", "&source=auto&limit=100")["memories"]
    found = Counter(memory["content"] for memory in memories if memory["owner"] != "dora")
    assert found == Counter({fact(number, turn) for number in range(TALKS) for turn in range(TURNS)})
