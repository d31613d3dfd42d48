import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from axes.models import AccessAttempt
from django.test import Client
from django.utils import timezone

from tests.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db


def sign_in(client: Client, username: str, password: str, **more: str):
    return client.post("/login", {"username": username, "password": password, **more})


def test_it_works(client: Client) -> None:
    make_user("alice")
    assert "Sign in" in client.get("/login").content.decode()

    response = sign_in(client, "alice", PASSWORD)

    assert response.status_code == 302
    assert response.url == "/memory"
    assert client.get("/keys").status_code == 200


def test_it_goes_on_to_the_page_that_was_asked_for(client: Client) -> None:
    make_user("alice")
    response = client.get("/conversations?instance=support-bot")
    assert response.url == "/login?next=/conversations%3Finstance%3Dsupport-bot"

    response = sign_in(client, "alice", PASSWORD, next="/conversations?instance=support-bot")

    assert response.url == "/conversations?instance=support-bot"


def test_a_wrong_password_is_typed_again_where_the_cursor_is(client: Client) -> None:
    focused = re.compile(r'name="(\w+)"[^>]* autofocus')
    assert focused.findall(client.get("/login").content.decode()) == ["username"]
    assert focused.findall(sign_in(client, "alice", "wrong").content.decode()) == ["password"]


def test_a_mistake_does_not_lose_the_page_that_was_asked_for(client: Client) -> None:
    make_user("alice")
    assert 'value="/keys"' in sign_in(client, "alice", "wrong", next="/keys").content.decode()


def test_what_is_sent_without_a_session_is_said_not_to_be_saved(client: Client) -> None:
    response = client.post("/memory/new?instance=support-bot", {"content": "Long thoughts"}, follow=True)
    assert "You were signed out, so nothing was saved." in response.content.decode()
    assert "signed out" not in client.get("/login").content.decode()


def test_it_goes_on_to_the_page_that_something_was_sent_from(client: Client) -> None:
    page = "/memory?instance=support-bot&page=2"
    for host, next in (("testserver", page), ("evil.example", "/memory/bulk?instance=support-bot")):
        response = client.post("/memory/bulk?instance=support-bot", headers={"Referer": f"http://{host}{page}"})
        assert response.url == f"/login?{urlencode({'next': next}, safe='/')}"


def test_it_goes_on_with_the_longest_message_that_recall_can_be_tried_with(client: Client) -> None:
    make_user("alice")
    page = f"/recall?{urlencode({'instance': 'support-bot', 'query': '退' * 4000})}"
    response = client.get(page)
    assert response.url == f"/login?{urlencode({'next': page}, safe='/')}"
    assert sign_in(client, "alice", PASSWORD, next=page).url == page


@pytest.mark.parametrize(
    "next", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "\x00", "//evil.example?x"]
)
def test_it_never_leads_to_another_site(client: Client, next: str) -> None:
    make_user("alice")
    assert sign_in(client, "alice", PASSWORD, next=next).url == "/memory"


def test_somebody_signed_in_goes_on(alice: Client) -> None:
    assert alice.get("/login?next=/keys").url == "/keys"


@pytest.mark.parametrize(
    ("username", "password"),
    [("alice", "wrong"), ("nobody", PASSWORD), ("bo\x00b", PASSWORD), ("", ""), ("b" * 500, "x")],
)
def test_a_wrong_name_or_password_is_said(client: Client, username: str, password: str) -> None:
    make_user("alice")

    response = sign_in(client, username, password)

    assert response.status_code == 200
    assert 'class="form-errors"' in response.content.decode() or 'class="error"' in response.content.decode()
    assert client.get("/keys").status_code == 302


def test_somebody_switched_off_cannot_sign_in(client: Client) -> None:
    user = make_user("alice")
    user.is_active = False
    user.save()
    assert "The name or the password is wrong." in sign_in(client, "alice", PASSWORD).content.decode()


def test_too_many_failures_say_when_to_try_again(client: Client) -> None:
    make_user("alice")
    for _ in range(8):
        response = sign_in(client, "alice", "wrong")

    assert response.status_code == 429
    assert response.headers["Retry-After"] == "900"
    assert "Try again in 15 minutes" in response.content.decode()
    assert sign_in(client, "alice", PASSWORD).status_code == 429
    assert client.get("/login").status_code == 200

    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))
    assert sign_in(client, "alice", PASSWORD).url == "/memory"


@pytest.mark.parametrize("forwarded", ["203.0.113.7", "198.51.100.1, 203.0.113.7", "2001:db8::7"])
def test_behind_a_proxy_wrong_passwords_lock_out_only_the_address_they_come_from(
    client: Client, settings, forwarded
) -> None:
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": 1}
    make_user("alice")

    def answer(password: str, address: str) -> int:
        form = {"username": "alice", "password": password}
        return client.post("/login", form, headers={"X-Forwarded-For": address}).status_code

    assert [answer("wrong", forwarded) for _ in range(8)][-1] == 429
    assert answer(PASSWORD, "198.51.100.1") == 302


def test_an_address_that_no_proxy_vouches_for_counts_for_nothing(client: Client) -> None:
    make_user("alice")
    statuses = []
    for number in range(8):
        form = {"username": "alice", "password": "wrong"}
        headers = {"X-Forwarded-For": f"203.0.113.{number}"}
        statuses.append(client.post("/login", form, headers=headers).status_code)
    assert statuses[-1] == 429


def test_what_a_proxy_says_instead_of_an_address_is_no_reason_to_fail(client: Client, settings) -> None:
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": 1}
    answer = client.post("/login", {"username": "alice", "password": "wrong"}, headers={"X-Forwarded-For": "unknown"})
    assert answer.status_code == 200
    assert AccessAttempt.objects.get().ip_address == "127.0.0.1"


def test_a_session_that_ended_sends_the_window_to_the_form(client: Client) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/conversations?instance=support-bot"}

    response = client.get("/conversations?instance=support-bot", headers=headers, follow=True)

    assert response.headers["HX-Redirect"] == "/login?next=%2Fconversations%3Finstance%3Dsupport-bot"


@pytest.mark.parametrize(
    ("page", "asked", "next"),
    [
        (
            "/memory?instance=support-bot",
            "/memory?instance=support-bot&search=tea",
            "/memory?instance=support-bot&search=tea",
        ),
        ("/memory?instance=support-bot", "/memory/embed?instance=support-bot", "/memory?instance=support-bot"),
    ],
    ids=["the search being typed", "a part of the page"],
)
def test_a_session_that_ended_is_told_and_gone_on_with(client: Client, page: str, asked: str, next: str) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{page}"}

    response = client.get(asked, headers=headers, follow=True)

    assert response.headers["HX-Redirect"] == f"/login?{urlencode({'next': next})}"
    assert "You were signed out. Sign in to go on where you were." in client.get("/login").content.decode()


def test_signing_out_is_a_post(alice: Client) -> None:
    assert alice.get("/logout").status_code == 405
    assert alice.post("/logout").url == "/login"
    assert alice.get("/keys").status_code == 302
