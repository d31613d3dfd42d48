import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryconsole.inputs import MOST_GROWTH
from memoryconsole.scrub import scrub, scrub_all

# Assembled here so that no file of the project contains anything shaped like a credential.
SECRETS = [
    "sk-" + "proj-" + "a1B2" * 8,
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "gh" + "p_" + "x" * 36,
    "xox" + "b-" + "123456789012-abcdef",
    "AI" + "za" + "s" * 35,
    "ey" + "J" + "hbGciOiJI.ey" + "J" + "zdWIiOiIx.c2lnbmF0dXJl",
    "mc_" + "0a1b2c3d" + "_" + "k" * 43,
    "gl" + "pat-" + "x" * 20,
    "np" + "m_" + "x" * 36,
    "h" + "f_" + "x" * 34,
    "-----BEGIN RSA PRIVATE " + "KEY-----\nabc\n-----END RSA PRIVATE " + "KEY-----",
    "-----BEGIN PGP PRIVATE " + "KEY BLOCK-----\nabc\n-----END PGP PRIVATE " + "KEY BLOCK-----",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_credential_is_replaced_and_the_rest_stays(secret: str) -> None:
    text, found = scrub(f"Use {secret} for the staging server.")
    assert secret not in text
    assert text.startswith("Use [redacted ")
    assert text.endswith(" for the staging server.")
    assert len(found) == 1


def test_a_password_in_words_or_in_an_address_is_replaced() -> None:
    assert scrub("The password: hunter2000, they said.")[0] == "The password: [redacted password], they said."
    assert scrub("postgres://bob:" + "s3cretpw@db/x")[0] == "postgres://[redacted password]@db/x"
    assert "abcdef0123456789" not in scrub("Authorization: Bearer abcdef0123456789")[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"user": "bob", "password": "', '", "host": "db"}'),
        ("DB_PASSWORD=", " ./start"),
        ("userPassword: '", "'"),
        ("Das Passwort: ", ", sagte er."),
        ("Mot de passe : ", ""),
        ("La contraseña: ", ""),
        ("Пароль: ", ""),
        ("密码：", ""),
        ("client_secret=", ""),
        ("export AWS_SECRET_ACCESS_KEY=", ""),
        ("AccountName=x;AccountKey=", ";EndpointSuffix=y"),
        ("Server=db;Pwd=", ";"),
        ('{\\"user\\": \\"bob\\", \\"password\\": \\"', '\\"}'),
        ("“password”: “", "”"),
        ("„Passwort“: „", "“"),
        ("Lösenord: ", ""),
        ("Heslo: ", ""),
        ("كلمة المرور: ", ""),
        ("My password is ", "."),
        ("The password for the guests' wifi is ", ", ask Ann."),
        ("Das Passwort für das WLAN: ", ""),
        ("Das Kennwort lautet ", ""),
        ("La contraseña es ", ""),
        ("Password (wifi): ", ""),
    ],
)
def test_a_password_is_known_by_its_name_in_documents_settings_and_other_languages(before: str, after: str) -> None:
    assert scrub(f"{before}hunter2000{after}")[0] == f"{before}[redacted password]{after}"


@pytest.mark.parametrize("quote", ['"', "'", '\\"'])
def test_a_password_between_quotes_goes_whole(quote: str) -> None:
    before, after = f"{quote}password{quote}: {quote}", f"{quote}, {quote}port{quote}: 5"
    assert scrub(before + "correct horse, battery" + after)[0] == f"{before}[redacted password]{after}"


def test_a_password_with_an_escaped_quote_goes_whole() -> None:
    assert scrub(r'{"password": "one\"two three", "port": 5}')[0] == '{"password": "[redacted password]", "port": 5}'


def test_a_password_of_an_address_without_a_user_is_replaced() -> None:
    assert scrub("redis://:" + "s3cretpw@cache:6379/0")[0] == "redis://[redacted password]@cache:6379/0"


def test_in_a_document_a_credential_is_known_by_the_name_beside_it() -> None:
    document = {"password": "correct horse", "db": {"apiKey": "hunter2000", "refreshToken": "q7" + "Zr-9" * 5}}
    clean, found = scrub_all(document)
    assert clean == {
        "password": "[redacted password]",
        "db": {"apiKey": "[redacted password]", "refreshToken": "[redacted token]"},
    }
    assert found == ["password", "password", "token"]
    assert scrub_all(clean) == (clean, [])


def test_in_a_document_a_password_may_be_a_number_or_one_of_several() -> None:
    clean, found = scrub_all({"password": 20002000, "apiKey": ["hunter2000", {"user": "bob"}], "port": 54321000})
    assert clean == {
        "password": "[redacted password]",
        "apiKey": ["[redacted password]", {"user": "bob"}],
        "port": 54321000,
    }
    assert found == ["password", "password"]


def test_in_a_document_what_only_speaks_of_credentials_is_left_alone() -> None:
    document = {"passwordPolicy": "at least 12 characters", "token": "a small silver coin", "password": "none"}
    assert scrub_all(document) == (document, [])


@pytest.mark.parametrize("name", ["access_token", "Secret", "X-Auth-Token", '"refreshToken"'])
def test_a_token_is_known_by_its_name_and_its_looks(name: str) -> None:
    token = "q7" + "Zr-9" * 5
    assert scrub(f"{name}: {token}")[0] == f"{name}: [redacted token]"


def test_a_password_in_a_header_is_replaced() -> None:
    assert scrub("Authorization: Basic " + "Ym9iOmh1bnRlcg==")[0] == "Authorization: Basic [redacted password]"


@pytest.mark.parametrize(
    "text",
    [
        "The token: a small silver coin from the fair.",
        "Her secret: responsibilities make her happy.",
        "Basic understanding of responsibilities is enough.",
        "Bob's office is in Munich.",
        "The password policy requires 12 characters.",
        "The password is base64 encoded, and the other one is sha256-hashed.",
        "The password is required, and the API key is only for reading.",
        "Her password for the old site was forgotten in 2019.",
        "pwd: /home/alice1/work",
        "Her API key expired, so she asked for a new one.",
        "See https://example.com/a/b?c=d for details.",
        "The task-force meets on Tuesday; ask-me-anything afterwards.",
        "Ticket 01a1e464-c166-76bb-b939-dd59bab3e80b is closed.",
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert scrub(text) == (text, [])


@pytest.mark.parametrize("text", ["password: hunter2000", "api_key=" + SECRETS[0] + ".", *SECRETS])
def test_a_text_that_was_scrubbed_is_left_alone_when_it_is_edited_or_imported(text: str) -> None:
    once, found = scrub(text)
    assert len(found) == 1
    assert scrub(once) == (once, [])


def test_what_names_a_password_is_left_when_the_password_is_the_same_word() -> None:
    assert scrub("Password=password")[0] == "Password=[redacted password]"
    assert scrub("password: password")[0] == "password: [redacted password]"


# What credentials are made of, put together in any order.
NAMES = [
    "password",
    "Passwort",
    "pwd",
    "token",
    "api_key",
    "für ",
    "is ",
    "bearer ",
    "authorization: basic ",
    "://",
    "@",
]
SIGNS = [":", "=", " ", ".", "\n", '"', "'", "\\", "“", "”", "`", "(x)", "{", "}"]
VALUES = [
    "hunter2000",
    "sk-",
    "ey" + "J",
    "a1B2" * 6,
    "mc_0a1b2c3d_",
    "[redacted password]",
    "-----BEGIN PRIVATE ",
    "KEY-----",
]
JUMBLED = st.lists(st.sampled_from([*NAMES, *SIGNS, *VALUES]), max_size=9).map("".join)


@settings(max_examples=1_000, deadline=None, derandomize=True, database=None)
@given(JUMBLED)
def test_scrubbing_again_changes_nothing_and_no_text_outgrows_its_limit(text: str) -> None:
    clean, _ = scrub(text)
    assert scrub(clean)[0] == clean
    assert len(clean) <= MOST_GROWTH * len(text)


def test_no_text_becomes_much_longer() -> None:
    """What is far from its limit is not looked at for that."""
    for shortest in ("://a:b@", "senha:123456 ", "密码:123456 "):
        assert len(scrub(shortest * 100)[0]) < MOST_GROWTH * len(shortest) * 100


@pytest.mark.parametrize("begun", ["token=", "secret:", "credential = ", "ey" + "J-", "://a:", "password: "])
def test_a_text_of_nothing_but_beginnings_holds_nobody_up(begun: str) -> None:
    """It takes minutes, not a second, if a pattern reads to the end of the text from every beginning."""
    scrubbing = threading.Thread(target=scrub, args=[begun * (400_000 // len(begun))], daemon=True)

    scrubbing.start()
    scrubbing.join(timeout=40)

    assert not scrubbing.is_alive()
