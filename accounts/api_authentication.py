"""Who calls the API: a program with a bearer key, or a person with the console's session and CSRF token."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.access import Actor, actor_of_user
from accounts.keys import actor_presenting
from accounts.models import User
from memoryconsole.api import SEND_KEY


class KeyOrSession(BaseAuthentication):
    """`request.user` is the `Actor`."""

    def authenticate(self, request: Request) -> tuple[Actor, None] | None:
        header = request._request.META.get("HTTP_AUTHORIZATION", "")
        if header:
            return self._by_key(header), None
        session = SessionAuthentication().authenticate(request)
        if session is None or isinstance(session[0], AnonymousUser):
            return None
        user: Any = session[0]
        assert isinstance(user, User)
        return actor_of_user(user), None

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="memory-console"'

    def _by_key(self, header: str) -> Actor:
        if header.partition(" ")[0].lower() != "bearer":
            raise AuthenticationFailed(SEND_KEY, code="invalid_key")
        actor = actor_presenting(header)
        if actor is None:
            raise AuthenticationFailed("This key is not valid, or was revoked or has expired.", code="invalid_key")
        return actor


def actor_of(request: Request) -> Actor:
    assert isinstance(request.user, Actor)
    return request.user
