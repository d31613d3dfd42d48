"""What signing in leaves behind is gone when it has served its purpose."""

from datetime import timedelta

import pytest
from axes.models import AccessAttempt, AccessLog
from django.contrib.sessions.models import Session
from django.db.models import F
from django.test import Client

from accounts.jobs import forget_sign_ins
from tests.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db


def kept() -> list[int]:
    return [model.objects.count() for model in (Session, AccessAttempt, AccessLog)]


def test_sessions_go_when_they_have_ended_and_sign_ins_after_a_day() -> None:
    make_user("alice")
    Client().post("/login", {"username": "alice", "password": PASSWORD})
    Client().post("/login", {"username": "hunter2, typed into the wrong field", "password": "x"})
    forget_sign_ins(0)
    assert kept() == [1, 1, 1]

    Session.objects.update(expire_date=F("expire_date") - timedelta(days=14))
    for model in (AccessAttempt, AccessLog):
        model.objects.update(attempt_time=F("attempt_time") - timedelta(days=1))
    forget_sign_ins(0)
    assert kept() == [0, 0, 0]
