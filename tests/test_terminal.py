import json

import pytest

from memoryconsole.terminal import json_text, one_line, printable

UNSAFE = ["\x1b[31m", "\x9b31m", "\x07", "\r", "\x7f", "\u202e", "\u2066", "\u2028", "\x00", "\x08"]


@pytest.mark.parametrize("unsafe", UNSAFE)
def test_what_a_terminal_would_obey_becomes_visible(unsafe: str):
    assert unsafe[0] not in printable(f"a{unsafe}b")
    assert unsafe[0] not in one_line(f"a{unsafe}b")


@pytest.mark.parametrize("unsafe", UNSAFE)
def test_json_stays_the_same_json(unsafe: str):
    text = json_text({"content": f"a{unsafe}b"})
    assert unsafe[0] not in text
    assert json.loads(text) == {"content": f"a{unsafe}b"}


def test_ordinary_text_stays_as_it_is():
    text = "Grüße, 日本語, 👩‍💻, one\n\ntwo"
    assert printable(text) == text
    assert one_line(text) == "Grüße, 日本語, 👩‍💻, one two"
