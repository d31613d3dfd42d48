"""MCP with the official client against real processes, over both transports. In order: one console for all."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.start.agent import Agent, Talk, talk_over_http, talk_over_stdio
from tests.start.console import Console, manage, processes, wait_until

TOOLS = {"memory_save", "memory_search", "memory_list", "memory_recall", "memory_delete"}
MODES = ["legacy", "auto"]


@pytest.fixture(scope="module")
def console(shared_data_dir: Path, free_port: int) -> Iterator[Console]:
    console = Console(shared_data_dir, free_port)
    try:
        console.wait_until_ready()
        assert manage("createinstance", "agent-bot", data_dir=shared_data_dir).returncode == 0
        yield console
    finally:
        for pid in console.family():
            if pid in processes():
                os.kill(pid, signal.SIGKILL)
        console.process.wait()


def made_key(console: Console, *options: str) -> str:
    made = manage("createapikey", *options, data_dir=console.data_dir)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.fixture(scope="module")
def key(console: Console) -> str:
    return made_key(console, "--instance", "agent-bot")


@pytest.fixture(scope="module")
def other_key(console: Console) -> str:
    return made_key(console, "--instance", "sales-bot")


def over_http(console: Console, key: str, talk: Talk, mode: str = "auto") -> None:
    talk_over_http(f"http://127.0.0.1:{console.port}/mcp", key, talk, mode=mode)


async def a_whole_session(agent: Agent) -> None:
    """Save, be refused, supersede, search, recall, delete."""
    assert {tool.name for tool in (await agent.client.list_tools()).tools} == TOOLS

    saved = await agent.call(
        "memory_save", key="editor", content="Ada writes code in Vim.", type="core", category="preference", importance=7
    )
    assert saved["event"] == "created"
    assert {"type": "identity", "category": "preference", "importance": 7}.items() <= saved["memory"].items()

    text, told = await agent.fails("memory_save", key="editor", content="Ada writes code in Emacs.")
    assert told["code"] == "key_taken"
    assert told["memory"]["content"] == "Ada writes code in Vim."
    assert "supersede_reason" in text
    assert "Ada writes code in Vim." in text

    changed = await agent.call(
        "memory_save", key="editor", content="Ada writes code in Emacs.", supersede_reason="She switched in May."
    )
    assert (changed["event"], changed["memory"]["id"]) == ("updated", saved["memory"]["id"])

    (found,) = (await agent.call("memory_search", query="which editor does Ada write code in", max_results=1))[
        "results"
    ]
    assert (found["key"], found["content"], found["superseded"]) == ("editor", "Ada writes code in Emacs.", False)

    (earlier,) = (await agent.call("memory_search", query="vim"))["results"]
    assert (earlier["superseded"], earlier["supersedeReason"]) == (True, "She switched in May.")
    assert (earlier["content"], earlier["currentContent"]) == ("Ada writes code in Vim.", "Ada writes code in Emacs.")

    listed = await agent.call("memory_list", type="identity")
    assert [memory["key"] for memory in listed["memories"]] == ["editor"]

    recalled = await agent.call("memory_recall", query="Which editor should I open?")
    assert "Ada writes code in Emacs." in recalled["context"]
    assert "Vim" not in recalled["context"]

    assert (await agent.call("memory_delete", key="editor"))["deleted"] == 1
    assert (await agent.call("memory_list"))["total"] == 0
    text, told = await agent.fails("memory_delete", key="editor")
    assert (text, told["code"]) == ("Nothing is saved under the key “editor”.", "not_found")


def test_the_mcp_server_costs_nothing_until_somebody_asks(console):
    assert console.children("mcpserver") == []


@pytest.mark.parametrize("mode", MODES)
def test_a_session_over_http(console, key, mode):
    over_http(console, key, a_whole_session, mode)


def test_a_session_over_stdio(console):
    talk_over_stdio("agent-bot", console.data_dir, a_whole_session)


def test_over_stdio_everything_is_answered_before_it_ends(console):
    """Also what is under way when the input ends, and what cannot be read, such as half of an emoji that was cut."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "shell", "version": "1"}}
    lines = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        *({"id": id, "method": "tools/call", "params": saving(text)} for id, text in ((2, "Tea"), (3, "\ud83d"))),
    ]
    said = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    ran = manage("mcp", "--instance", "support-bot", data_dir=console.data_dir, said=f"{said}nonsense\n\n")
    told = {answer["id"]: answer for answer in map(json.loads, ran.stdout.splitlines())}
    assert (ran.returncode, told.keys()) == (0, {1, 2, 3, None})
    assert told[2]["result"]["structuredContent"]["event"] == "created"
    assert told[3]["error"]["code"] == told[None]["error"]["code"] == -32700


def saving(text: str) -> dict[str, object]:
    return {"name": "memory_save", "arguments": {"key": "from-a-pipe", "content": text}}


def test_a_key_of_another_instance_sees_nothing(console, key, other_key):
    async def keep(agent: Agent) -> None:
        await agent.call("memory_save", key="secret", content="The vault opens at noon.")

    async def look(agent: Agent) -> None:
        for tool in ("memory_search", "memory_recall"):
            assert "vault" not in str(await agent.call(tool, query="When does the vault open?"))
        assert "vault" not in str(await agent.call("memory_list"))
        assert (await agent.fails("memory_delete", key="secret"))[1]["code"] == "not_found"
        assert (await agent.call("memory_save", key="secret", content="Mine."))["event"] == "created"

    async def still_there(agent: Agent) -> None:
        (memory,) = (await agent.call("memory_list"))["memories"]
        assert memory["content"] == "The vault opens at noon."

    over_http(console, key, keep)
    over_http(console, other_key, look)
    over_http(console, key, still_there)


def test_a_read_only_key_may_look_and_is_told_so(console):
    async def look(agent: Agent) -> None:
        assert (await agent.call("memory_list"))["total"] == 1
        for tool, arguments in {
            "memory_save": {"key": "new", "content": "New."},
            "memory_delete": {"key": "secret"},
        }.items():
            assert await agent.fails(tool, **arguments) == (
                "This key may only read.",
                {"detail": "This key may only read.", "code": "read_only"},
            )

    over_http(console, made_key(console, "--instance", "agent-bot", "--read-only"), look)


@pytest.mark.parametrize("options", [["--all-instances"], ["--instance", "agent-bot", "sales-bot"]])
def test_a_key_must_be_made_for_one_instance(console, options):
    async def ask(agent: Agent) -> None:
        text, told = await agent.fails("memory_list")
        assert told["code"] == "one_instance_needed"
        assert "createapikey --instance" in text

    over_http(console, made_key(console, *options), ask)


@pytest.mark.parametrize("key", ["", "mc_0123abcd_nonsense"])
def test_without_a_valid_key_there_is_no_door(console, key):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    answer = httpx2.post(f"http://127.0.0.1:{console.port}/mcp", headers=headers, json={})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert set(answer.json()) == {"detail", "code"}


def test_a_killed_mcp_server_is_replaced_when_the_next_request_comes(console, key):
    async def ask(agent: Agent) -> None:
        assert (await agent.call("memory_list"))["total"] == 1

    (before,) = console.children("mcpserver")
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: "The MCP server stopped" in console.output)
    over_http(console, key, ask)
    assert console.children("mcpserver") not in ([], [before])


def test_sigterm_leaves_nothing_behind(console):
    family = console.family()
    assert any("mcpserver" in command for command in family.values())
    assert console.signal(signal.SIGTERM) == 0
    assert not family.keys() & processes().keys()


def test_an_unknown_instance_is_refused_at_once(console):
    refused = manage("mcp", "--instance", "no-such-bot", data_dir=console.data_dir)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "no-such-bot" in refused.stderr
