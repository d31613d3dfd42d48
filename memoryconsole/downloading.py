"""Downloads, which are streamed as fast as the client reads them."""

from collections.abc import Callable, Iterable
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import quote

from django.http import StreamingHttpResponse

from memoryconsole.errors import Problem
from memoryconsole.streams import safe_name

# Half of the threads of the web server: a download holds one until it is read, and the others answer other requests.
MOST = 4
PATIENCE = 0.5
_places = BoundedSemaphore(MOST)


class TooManyDownloads(Problem):
    status = 503
    code = "try_again"
    detail = f"{MOST} downloads are running, which is as many as there may be. Try again when one has ended."


class _Parts:
    """The parts of a download. It takes one of the places, and frees it at its end or when the client has gone."""

    def __init__(self, parts: Callable[[], Iterable[str | bytes]]) -> None:
        self._holds = _places.acquire(timeout=PATIENCE)
        if not self._holds:
            raise TooManyDownloads
        try:
            self._parts: Any = iter(parts())
        except BaseException:
            self._free()
            raise

    def __iter__(self) -> "_Parts":
        return self

    def __next__(self) -> str | bytes:
        try:
            part: str | bytes = next(self._parts)
        except BaseException:
            self._free()
            raise
        return part

    def close(self) -> None:
        if hasattr(self._parts, "close"):
            self._parts.close()
        self._free()

    def __del__(self) -> None:
        self._free()

    def _free(self) -> None:
        if self._holds:
            self._holds = False
            _places.release()


def download(parts: Callable[[], Iterable[str | bytes]], *, name: str, content_type: str) -> StreamingHttpResponse:
    """A response that browsers save, and never display, run or sniff."""
    ascii_name = safe_name(name).encode("ascii", "replace").decode().replace("?", "_")
    response = StreamingHttpResponse(_Parts(parts), content_type=content_type)
    response["Content-Disposition"] = (
        f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(safe_name(name))}"
    )
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = "private, no-store"
    return response
