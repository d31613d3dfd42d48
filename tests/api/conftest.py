import pytest

from instances.models import Instance
from tests.api.calling import Caller
from tests.factories import make_instance, make_key


@pytest.fixture
def support(db: None) -> Instance:
    return make_instance("support-bot")


@pytest.fixture
def sales(db: None) -> Instance:
    return make_instance("sales-bot")


@pytest.fixture
def api(support: Instance) -> Caller:
    """A program that may read and write support-bot, and nothing else."""
    return Caller(make_key(support))
