"""Two tenants: Alice works with the support bot, Mallory with the sales bot; the superadmin with both."""

from collections.abc import Callable

import pytest
from django.test import Client

from accounts.models import User
from instances.models import Instance
from tests.factories import make_instance, make_user


@pytest.fixture
def support() -> Instance:
    return make_instance("support-bot", name="Support bot")


@pytest.fixture
def offline(support: Instance) -> Instance:
    """The support bot with vectors that need no key."""
    Instance.objects.filter(pk=support.pk).update(embedder="offline")
    support.refresh_from_db()
    return support


@pytest.fixture
def sales() -> Instance:
    return make_instance("sales-bot", name="Sales bot")


@pytest.fixture
def signed_in() -> Callable[[User], Client]:
    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return sign_in


@pytest.fixture
def alice(support: Instance, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(make_user("alice", support))


@pytest.fixture
def mallory(sales: Instance, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(make_user("mallory", sales))


@pytest.fixture
def superadmin(signed_in: Callable[[User], Client]) -> Client:
    return signed_in(make_user("root", superadmin=True))
