"""The application as a web server calls it."""

import os
from collections.abc import Iterable
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryconsole.settings")
django: WSGIHandler = get_wsgi_application()


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Return a response that is no stream in one piece: the server asks for each piece separately."""
    response = django(environ, start_response)
    if not isinstance(response, HttpResponse):
        return response
    body = response.content
    response.close()
    return [body]
