import socket
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from memoryconsole import processes
from memoryconsole.commands import ConsoleCommand


class Command(ConsoleCommand):
    help = "Answers what the web server passes on from /mcp, until it is told to stop. `up` starts one when needed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--socket", type=int, metavar="FD", help="a listening socket; otherwise MCP_PORT is opened")
        parser.add_argument("--parent", type=int, help="stop when this process is gone")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["parent"]:
            processes.end_with_parent(options["parent"])
        if options["socket"] is None and not settings.MCP_PORT:
            self.fail("Set MCP_PORT, here and for the web server: it is the port between the two.")
        listening = socket.socket(fileno=options["socket"]) if options["socket"] else self._opened()

        from memories.mcp import http

        http.serve(listening)

    def _opened(self) -> socket.socket:
        try:
            return processes.listen_locally(settings.MCP_PORT)
        except OSError as error:
            self.fail(f"Cannot listen on 127.0.0.1 port {settings.MCP_PORT}: {error.strerror}.")
