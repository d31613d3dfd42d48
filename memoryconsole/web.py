"""The web server: a process that listens, and a child of it that answers.

Only the child loads Django's apps, so the listening process stays small.
"""

import gc
import os
import socket
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from importlib import import_module
from threading import Thread
from typing import Any

from django.conf import settings
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from memoryconsole import embedded, processes

# More threads than cores, because a request that waits for an embeddings API holds its thread and nothing else.
THREADS = 8
STOP_SECONDS = 8


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--host", default=settings.HOST)
    parser.add_argument("--port", type=port_number, default=settings.PORT)
    parser.add_argument("--parent", type=int, help="stop when this process is gone")


def serve(host: str, port: int, parent: int | None) -> None:
    if parent:
        processes.end_with_parent(parent)
    # Before the fork, because exit handlers run in this process and not in the one that serves.
    if settings.EMBEDDED_POSTGRES:
        embedded.ensure_running()
    server = Granian(
        "memoryconsole.wsgi:application",
        # A number, because it takes no names.
        address=_address(host, port)[-1][0],
        port=port,
        interface=Interfaces.WSGI,
        workers=1,
        blocking_threads=THREADS,
        blocking_threads_idle_timeout=600,
        # Counts open connections, idle ones included: a small number would lock browsers out.
        backpressure=1024,
        workers_kill_timeout=STOP_SECONDS,
        websockets=False,
        log_level=LogLevels.error,
    )
    listening = os.getpid()

    def load(target: str) -> Callable[..., Any]:
        from memoryconsole.wsgi import application

        processes.end_with_parent(listening)
        Thread(target=_warm_up, daemon=True).start()
        return application

    server.serve(target_loader=load)


def _warm_up() -> None:
    """Import what takes a second, so that the first search need not wait for it."""
    import_module("openai.resources.embeddings")
    # What is loaded by now stays: collecting garbage in all of it would stop every request for a fifth of a second.
    gc.collect()
    gc.freeze()


def port_number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ArgumentTypeError(f"{text!r} is not a port; ports go from 1 to 65535")
    return int(text)


def address_problem(host: str, port: int) -> str | None:
    """Why this address cannot be used, or None. The server itself would share a port that is in use."""
    try:
        family, kind, protocol, _, address = _address(host, port)
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _address(host: str, port: int) -> Any:
    """What `socket` knows about the first address of a name, such as localhost."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]


if __name__ == "__main__":
    arguments = ArgumentParser()
    add_arguments(arguments)
    serve(**vars(arguments.parse_args()))
