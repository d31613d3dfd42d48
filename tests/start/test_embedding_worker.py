"""The real worker makes vectors of new memories, through a real API, and goes on after kill -9."""

import os
import signal
import time
from typing import Any

import pytest

from tests.openai_server import OpenAIServer
from tests.start.console import Console, manage, wait_until

# A dead worker's jobs are taken up when it has not been heard of for half a minute.
TAKEN_UP = 100


@pytest.fixture(scope="module")
def console(console_with_openai: Console) -> Console:
    return console_with_openai


@pytest.fixture(scope="module")
def key(console: Console) -> str:
    assert manage("createinstance", "new-bot", data_dir=console.data_dir).returncode == 0
    made = manage("createapikey", "--instance", "new-bot", data_dir=console.data_dir)
    return made.stdout.strip()


def total(console: Console, key: str, query: str) -> Any:
    return console.get(f"/api/v1/memories?instanceId=new-bot&{query}", key)[1].get("total")


def save(console: Console, key: str, *contents: str) -> list[str]:
    body = {"instanceId": "new-bot", "memories": [{"content": content} for content in contents]}
    status, answer = console.get("/api/v1/memories/bulk", key, body)
    assert status == 201
    memories: Any = answer["memories"]
    return [memory["id"] for memory in memories]


def test_a_new_memory_is_ready_within_seconds_and_found_by_meaning(console: Console, key: str) -> None:
    (id,) = save(console, key, "The dog sleeps in the hall")
    started = time.monotonic()
    wait_until(lambda: total(console, key, "embedding=ready") == 1, 10)
    assert time.monotonic() - started < 5
    status, answer = console.get("/api/v1/memories?instanceId=new-bot&search=puppy", key)
    memories: Any = answer["memories"]
    assert (status, answer["searchMode"], [memory["id"] for memory in memories]) == (200, "hybrid", [id])


def test_while_the_api_is_down_memories_are_saved_and_found_by_words(
    console: Console, key: str, openai: OpenAIServer
) -> None:
    openai.fail("server_error")
    save(console, key, "Alice flew a zeppelin")
    status, answer = console.get("/api/v1/memories?instanceId=new-bot&search=zeppelin", key)
    assert (status, answer["searchMode"], answer["total"]) == (200, "keyword", 1)
    assert "500" in str(answer["reason"])
    asked = len(openai.requests)
    wait_until(lambda: len(openai.requests) > asked + 2)
    openai.recover()
    wait_until(lambda: total(console, key, "embedding=pending") == 0)


def test_a_job_can_be_watched_and_survives_kill_9(console: Console, key: str, openai: OpenAIServer) -> None:
    ready = total(console, key, "embedding=ready")
    openai.latency = 1.5
    save(console, key, *(f"Memory number {n} of many" for n in range(700)))
    body = {"instanceId": "new-bot", "kind": "embed-memories"}
    status, answer = console.get("/api/v1/jobs", key, body)
    job: Any = answer["job"]
    assert (status, job["state"], job["total"]) == (202, "queued", 700)
    wait_until(lambda: total(console, key, "embedding=ready") > ready)
    (worker,) = console.children("worker")
    os.kill(worker, signal.SIGKILL)
    left = total(console, key, "embedding=pending")
    assert 0 < left < 700
    openai.latency = 0.0

    def state() -> Any:
        found: Any = console.get(f"/api/v1/jobs/{job['id']}?instanceId=new-bot", key)[1]["job"]
        return found["state"], found["done"], found["total"], found["error"]

    wait_until(lambda: state()[0] == "done", TAKEN_UP)
    assert state() == ("done", 700, 700, None)
    assert total(console, key, "embedding=pending") == 0
    texts = [text for text in openai.embedded() if text.endswith("of many")]
    assert len(set(texts)) == 700
    assert len(texts) <= 700 + left, "nothing that was stored is asked for again"


def test_what_was_saved_while_no_key_was_set_is_embedded_when_a_worker_starts_with_one(
    console: Console, key: str
) -> None:
    said = ("memory", "add", "fact", "Alice keeps bees", "--instance", "new-bot")
    assert manage(*said, data_dir=console.data_dir, OPENAI_API_KEY="").returncode == 0
    assert total(console, key, "embedding=pending") == 1
    (worker,) = console.children("worker")
    os.kill(worker, signal.SIGTERM)
    wait_until(lambda: total(console, key, "embedding=pending") == 0, 30)
