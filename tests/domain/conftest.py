import pytest

from instances.models import Instance
from tests.factories import make_instance
from tests.openai_server import OpenAIServer


@pytest.fixture
def bot(openai: OpenAIServer) -> Instance:
    return make_instance("support-bot")
