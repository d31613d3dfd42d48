from typing import Any

import pytest
from django.test import Client

from accounts.models import AccountEvent
from instances.forms import SettingsForm
from instances.models import Instance
from tests.factories import store_with_another_encryption_key
from tests.openai_server import GOOD_KEY, OpenAIServer

pytestmark = pytest.mark.django_db
URL = "/instances/support-bot/settings"


def filled(instance: Instance, **changes: Any) -> dict[str, Any]:
    """What a browser sends when only the changes were made."""
    form = SettingsForm(instance=instance, is_superadmin=True)
    values = {name: form[name].value() for name in form.fields} | {"shown": form.shown}
    sent = {**values, **changes}
    return {name: "on" if value is True else value for name, value in sent.items() if value not in (None, False)}


def test_every_setting_is_there_with_its_help(alice: Client, support: Instance) -> None:
    page = alice.get(URL).content.decode()

    for name in SettingsForm.base_fields:
        if name not in {"team", "organisation", "openai_key"}:
            assert f'id="{name}"' in page
    assert 'id="openai-key"' in page
    assert "the default is 8." in page


def test_settings_are_saved(alice: Client, support: Instance) -> None:
    changes = {
        "name": "Help",
        "language": "german",
        "embedder": "offline",
        "recall_limit": "12",
        "dedupe_threshold": "0.95",
    }

    response = alice.post(URL, filled(support, memory_enabled=False, **changes))

    assert response.url == URL
    support.refresh_from_db()
    assert (support.name, support.language, support.embedder) == ("Help", "german", "offline")
    assert (support.memory_enabled, support.recall_limit, support.dedupe_threshold) == (False, 12, 0.95)
    fields = AccountEvent.objects.get(action="instance changed").detail["fields"]
    assert fields == ["dedupe_threshold", "embedder", "language", "memory_enabled", "name", "recall_limit"]
    assert "The settings are saved." in alice.get(URL).content.decode()


def test_a_save_leaves_alone_what_somebody_else_changed(alice: Client, support: Instance) -> None:
    assert 'name="shown"' in alice.get(URL).content.decode()
    seen = filled(support, name="Help")
    Instance.objects.update(recall_limit=20)
    alice.post(URL, seen)
    support.refresh_from_db()
    assert (support.name, support.recall_limit) == ("Help", 20)


@pytest.mark.parametrize("shown", ["", "{", "[]", '{"name": []}'])
def test_a_page_that_does_not_say_what_it_showed_is_saved_as_it_is(
    alice: Client, support: Instance, shown: str
) -> None:
    alice.post(URL, filled(support, name="Help", shown=shown))
    support.refresh_from_db()
    assert support.name == "Help"


def test_only_superadmins_move_an_instance(alice: Client, superadmin: Client, support: Instance) -> None:
    alice.post(URL, filled(support, team="Pirates", organisation="Elsewhere"))
    support.refresh_from_db()
    assert str(support.team) == "default"

    superadmin.post(URL, filled(support, team="Care", organisation="Example Ltd"))
    support = Instance.objects.get()
    assert (str(support.team), str(support.team.organisation)) == ("Care", "Example Ltd")


def test_a_key_is_kept_secret_and_takes_the_warning_away(alice: Client, support: Instance) -> None:
    assert "no OpenAI or Azure key reaches this instance" in alice.get(URL).content.decode()

    alice.post(URL, filled(support, openai_key=GOOD_KEY))

    page = alice.get(URL).content.decode()
    assert "••••abcd" in page
    assert "Replace the key</label>" in page
    assert GOOD_KEY not in page
    assert "no OpenAI or Azure key reaches this instance" not in page
    support.refresh_from_db()
    assert support.openai_key == GOOD_KEY

    alice.post(URL, filled(support, name="Help"))
    support.refresh_from_db()
    assert support.openai_key == GOOD_KEY

    alice.post(URL, filled(support, openai_key="sk-other-0123456789-wxyz"))
    assert "••••wxyz" in alice.get(URL).content.decode()

    alice.post(URL, filled(support, remove_openai_key="on"))
    support.refresh_from_db()
    assert (support.openai_key, support.openai_key_last4) == ("", "")
    assert "no OpenAI or Azure key reaches this instance" in alice.get(URL).content.decode()


def test_that_no_key_reaches_it_is_said_once(alice: Client, support: Instance) -> None:
    assert alice.get(URL).content.decode().count("key reaches this instance") == 1
    Instance.objects.update(memory_enabled=False)
    assert alice.get(URL).content.decode().count("No key reaches this instance. With a key, search finds meaning") == 1


def test_a_key_is_replaced_where_there_is_one(alice: Client, support: Instance) -> None:
    assert "Replace the key</label>" not in alice.get(URL).content.decode()
    alice.post(URL, filled(support, openai_key=GOOD_KEY))
    assert "Replace the key</label>" in alice.get(URL).content.decode()


@pytest.mark.parametrize("key", ["", GOOD_KEY])
@pytest.mark.parametrize(
    ("embedder", "says"),
    [
        ("offline", "Search uses offline vectors, with a key or without."),
        ("azure", "is not used until “Embeddings by” is changed."),
    ],
)
def test_where_search_does_not_use_the_key_the_page_says_so(
    alice: Client, support: Instance, embedder: str, says: str, key: str
) -> None:
    assert says not in alice.get(URL).content.decode()
    alice.post(URL, filled(support, embedder=embedder, openai_key=key))
    page = alice.get(URL).content.decode()
    assert says in page
    assert "search finds meaning as well as words" not in page


@pytest.mark.parametrize("limit", ["12", "many"])
def test_removing_the_key_neither_saves_nor_loses_what_else_was_typed(
    alice: Client, support: Instance, limit: str
) -> None:
    alice.post(URL, filled(support, openai_key=GOOD_KEY))
    typed = filled(support, remove_openai_key="on", name="Half a na", recall_limit=limit, memory_enabled=False)

    page = alice.post(URL, typed, follow=True).content.decode()

    assert "The key is removed. What else you have changed on this page is not saved yet." in page
    assert 'value="Half a na"' in page
    assert f'name="recall_limit" value="{limit}"' in page
    assert "checked" not in page
    support.refresh_from_db()
    assert (support.openai_key, support.name, support.recall_limit) == ("", "Support bot", 8)
    assert support.memory_enabled


@pytest.mark.parametrize("server_key", ["", "sk-server-0123456789"])
def test_a_key_that_cannot_be_read_is_told_and_can_be_replaced_or_removed(
    alice: Client, support: Instance, settings: Any, server_key: str
) -> None:
    settings.OPENAI_API_KEY = server_key
    store_with_another_encryption_key(support, GOOD_KEY)

    page = alice.get(URL).content.decode()
    assert "••••abcd, cannot be read with this server&#x27;s FIELD_ENCRYPTION_KEYS" in page
    assert "Remove key" in page
    assert "Unreadable OpenAI key" in alice.get("/instances").content.decode()

    alice.post(URL, filled(support, openai_key="sk-other-0123456789-wxyz"))
    assert "cannot be read" not in alice.get(URL).content.decode()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "n" * 101}, "at most 100 characters"),
        ({"name": "a\x00b"}, "Null characters are not allowed."),
        ({"language": "klingon"}, "klingon is not one of the available choices"),
        ({"embedder": "magic"}, "magic is not one of the available choices"),
        ({"openai_key": "short"}, "This does not look like an API key."),
        ({"openai_key": "sk-with a blank in it"}, "This does not look like an API key."),
        ({"recall_limit": "0"}, "Choose a value from 1 to 50."),
        ({"recall_limit": "51"}, "Choose a value from 1 to 50."),
        ({"recall_limit": "9" * 30}, "Choose a value from 1 to 50."),
        ({"recall_limit": "3.5"}, "Enter a whole number."),
        ({"recall_limit": "many"}, "Enter a whole number."),
        ({"recall_limit": ""}, "This field is required."),
        ({"recall_threshold": "1.01"}, "Choose a value from 0 to 1."),
        ({"recall_threshold": "nan"}, "Enter a number."),
        ({"auto_approve_importance": "12"}, "Choose a value from 1 to 11."),
    ],
)
def test_bad_input_is_said_at_the_field_and_changes_nothing(
    alice: Client, support: Instance, changes: dict[str, str], says: str
) -> None:
    values = {"name": "Changed", **changes}

    response = alice.post(URL, filled(support, **values))

    page = response.content.decode()
    assert response.status_code == 200
    assert says in page
    assert "Nothing was saved." in page
    if "openai_key" in changes:
        assert changes["openai_key"] not in page
    assert Instance.objects.filter(name="Support bot", recall_limit=8, openai_key_last4="").exists()
    assert not AccountEvent.objects.filter(action="instance changed").exists()


def test_a_key_is_asked_for_again_where_something_else_was_wrong(
    alice: Client, support: Instance, settings: Any
) -> None:
    """Its field comes back empty: saved with what was put right, the settings would be without the key."""
    again = "Enter it again: it is not kept while something else is put right."
    page = alice.post(URL, filled(support, openai_key=GOOD_KEY, recall_limit="many")).content.decode()
    assert again in page
    assert '<a href="#openai-key">OpenAI key</a>' in page
    assert again not in alice.post(URL, filled(support, recall_limit="many")).content.decode()
    with OpenAIServer() as server:
        settings.OPENAI_BASE_URL = server.url
        tested = alice.post(f"{URL}/test-key", filled(support, openai_key=GOOD_KEY)).content.decode()
    assert "The key works." in tested
    assert again in tested


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (GOOD_KEY, "The key works."),
        ("sk-wrong-0123456789-abcd", "The API does not accept this key."),
        ("sk-poor-0123456789-abcd", "its quota is used up or it is being rate limited"),
        ("sk-shut-0123456789-abcd", "does not let it list models"),
        ("short", "This does not look like an API key."),
        ("", "There is no key to test."),
    ],
)
def test_a_key_can_be_tested(alice: Client, support: Instance, settings: Any, key: str, says: str) -> None:
    with OpenAIServer() as server:
        settings.OPENAI_BASE_URL = server.url
        fragment = alice.post(f"{URL}/test-key", {"openai_key": key}, headers={"HX-Request": "true"})
        whole = alice.post(f"{URL}/test-key", filled(support, openai_key=key, name="Not saved yet"))

    assert says in fragment.content.decode()
    assert "<html" not in fragment.content.decode()
    assert says in whole.content.decode()
    assert 'value="Not saved yet"' in whole.content.decode()
    assert not key or key not in whole.content.decode()
    support.refresh_from_db()
    assert (support.name, support.openai_key) == ("Support bot", "")


def test_the_saved_key_is_tested_when_none_is_entered(alice: Client, support: Instance, settings: Any) -> None:
    alice.post(URL, filled(support, openai_key=GOOD_KEY))
    with OpenAIServer() as server:
        settings.OPENAI_BASE_URL = server.url
        assert "The key works." in alice.post(f"{URL}/test-key", {"openai_key": ""}).content.decode()
    settings.OPENAI_BASE_URL = "http://127.0.0.1:1/v1"
    assert "cannot be reached" in alice.post(f"{URL}/test-key", {"openai_key": ""}).content.decode()


def test_strangers_find_nothing(mallory: Client, client: Client, support: Instance) -> None:
    for path in (URL, "/instances/no-such-bot/settings", "/instances/%00/settings", "/instances/A b/settings"):
        assert client.get(path).url.startswith("/login?next=/instances/")
        assert mallory.get(path).status_code == 404
        assert mallory.post(path, filled(support, name="Mine")).status_code == 404
        assert mallory.post(f"{path}/test-key", {"openai_key": GOOD_KEY}).status_code == 404
    support.refresh_from_db()
    assert support.name == "Support bot"


def test_azure_without_a_deployment_for_chat_is_warned_about(alice: Client, support: Instance, settings: Any) -> None:
    settings.AZURE_OPENAI_ENDPOINT, settings.AZURE_OPENAI_API_KEY = "https://azure.example", "key"
    assert "AZURE_OPENAI_CHAT_DEPLOYMENT" in alice.get(URL).content.decode()
    assert "</svg> No deployment for chat</a>" in alice.get("/instances").content.decode()
    settings.AZURE_OPENAI_CHAT_DEPLOYMENT = "fast"
    assert "AZURE_OPENAI_CHAT_DEPLOYMENT" not in alice.get(URL).content.decode()


def test_the_picker_leads_from_settings_to_settings(superadmin: Client, support: Instance, sales: Instance) -> None:
    assert 'action="/instances/settings"' in superadmin.get(URL).content.decode()
    response = superadmin.get("/instances/settings?instance=sales-bot")
    assert (response.status_code, response.headers["Location"]) == (302, "/instances/sales-bot/settings")


def test_the_picker_leads_nobody_elsewhere(alice: Client, support: Instance, sales: Instance) -> None:
    for slug in ("sales-bot", "nobody", "//evil.example"):
        assert alice.get("/instances/settings", {"instance": slug}).status_code == 404
    assert alice.get("/instances/settings").status_code in (400, 404)
