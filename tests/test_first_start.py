import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from accounts.access import SHELL
from accounts.models import User
from accounts.people import readable_password
from instances.models import Instance
from memories.demo import remove_demo
from memoryconsole.first_start import prepare
from tests.factories import make_instance, make_user


@pytest.mark.django_db
def test_the_first_superadmin_gets_a_password_that_is_told_once():
    password = prepare(demo=False)
    user = User.objects.get()
    assert password is not None
    assert user.check_password(password)
    assert (user.username, user.is_superadmin, user.is_active) == ("admin", True, True)
    assert prepare(demo=False) is None
    assert User.objects.get().check_password(password)


@pytest.mark.django_db
def test_name_and_password_may_be_given(settings: Any):
    settings.ADMIN_USERNAME, settings.ADMIN_PASSWORD = "root", "correct horse battery"
    assert prepare(demo=False) is None
    assert User.objects.get(username="root").check_password("correct horse battery")


@pytest.mark.django_db
def test_somebody_is_there_already():
    make_user("alice")
    assert prepare(demo=True) is None
    assert [user.username for user in User.objects.all()] == ["alice"]
    assert not Instance.objects.exists()


@pytest.mark.django_db
def test_the_demo_comes_with_the_first_start_only():
    prepare(demo=True)
    assert set(Instance.objects.values_list("slug", flat=True)) == {"support-bot", "sales-bot"}
    remove_demo(SHELL)
    prepare(demo=True)
    assert not Instance.objects.exists()


@pytest.mark.django_db
def test_no_demo_when_it_is_not_wanted_or_the_database_is_your_own(settings: Any):
    prepare(demo=False)
    assert not Instance.objects.exists()
    User.objects.all().delete()
    settings.EMBEDDED_POSTGRES = False
    prepare(demo=True)
    assert not Instance.objects.exists()


@pytest.mark.django_db
def test_an_instance_with_a_name_of_the_demo_is_left_alone():
    make_instance("support-bot")
    assert prepare(demo=True)
    assert not Instance.objects.filter(is_demo=True).exists()


@pytest.mark.django_db(transaction=True)
def test_two_starts_at_once_make_one_superadmin():
    with ThreadPoolExecutor(4) as threads:
        passwords = list(threads.map(_start, range(4)))
    assert [password is not None for password in passwords].count(True) == 1
    assert User.objects.count() == 1
    assert Instance.objects.count() == 2


def _start(number: int) -> str | None:
    try:
        return prepare(demo=True)
    finally:
        connection.close()


def test_passwords_are_readable_and_differ():
    passwords = {readable_password() for _ in range(50)}
    assert len(passwords) == 50
    assert all(re.fullmatch(r"[a-z]{4}(-[a-z]{4}){4}", password) for password in passwords)
