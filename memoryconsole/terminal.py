"""Text for a terminal: stored text is data, so nothing in it may move the cursor, change colours or reorder a line."""

import json
import re
from typing import Any

# Control characters except the line break, line separators, and marks that change the direction of text.
_UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with control characters shown as escapes instead of being obeyed."""
    return _UNSAFE.sub(_visible, text.replace("\r\n", "\n").expandtabs(4))


def one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def json_text(answer: Any) -> str:
    """Indented JSON that is still the same JSON after everything unsafe in it is escaped."""
    text = json.dumps(answer, indent=2, ensure_ascii=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
