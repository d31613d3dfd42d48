"""An agent: the official client, over either transport, in one session."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from tests.environment import ROOT

PATIENCE = 150


class Agent:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers; it must not be an error."""
        result = await self._call(tool, arguments)
        assert not result.is_error, result
        return result.structured_content

    async def fails(self, tool: str, **arguments: Any) -> Any:
        """What a tool says went wrong, as it is read by a model and as data."""
        result = await self._call(tool, arguments)
        assert result.is_error, result
        text = result.content[0].text
        assert "Traceback" not in text
        return text, result.structured_content

    async def _call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments)
        assert result.content[0].type == "text"
        return result


Talk = Callable[[Agent], Awaitable[None]]


def talk_over_stdio(slug: str, data_dir: Path, talk: Talk) -> None:
    environment = {**os.environ, "DATA_DIR": str(data_dir)}
    arguments = [str(ROOT / "manage.py"), "mcp", "--instance", slug]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=environment)

    async def run() -> None:
        async with Client(parameters, read_timeout_seconds=PATIENCE) as client:
            await talk(Agent(client))

    asyncio.run(run())


def talk_over_http(url: str, key: str, talk: Talk, *, mode: str = "auto") -> None:
    async def run() -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode, read_timeout_seconds=PATIENCE) as client:
                await talk(Agent(client))

    asyncio.run(run())
