"""Replaces credentials in texts before these are stored, logged or returned.

Each pattern is a shape that hardly anything but a secret has; ordinary words and ids are left alone.
"""

import re
from typing import Any

REDACTED = "[redacted {}]"

# Names of secrets. Anything after one of the first is a secret; after the vague ones only what looks like one.
_NAMES = (
    *("password", "passwd", "passphrase", "api[_ -]?key", "secret[_ -]?key", "client[_ -]?secret", "passwort"),
    *("kennwort", "mot de passe", "contraseña", "senha", "wachtwoord", "hasło", "şifre", "parola", "пароль"),
    *("密码", "密碼", "パスワード", "비밀번호"),
)
_VAGUE_NAMES = ("token", "secret", "credential")
# What separates name and secret, also in a JSON document or with a full-width colon.
_IS = r"[\"']?\s*[:=：]\s*[\"']?"
# A secret that is replaced already: texts are scrubbed again whenever they are edited, merged or imported.
_REPLACED = r"\[redacted [A-Za-z ]+\]"
_SHAPES = [
    ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    ("Memory Console key", r"\bmc_[0-9a-f]{8}_[A-Za-z0-9-]{20,}"),
    ("API key", r"\b(?:sk|pk|rk)[-_](?:[A-Za-z]+[-_])*[A-Za-z0-9_-]{20,}"),
    ("AWS key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})"),
    ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Google key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("token", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("bearer token", r"(?i)(?<=\bbearer )[A-Za-z0-9._~+/-]{16,}=*"),
    ("password", r"(?i)(?<=://)[^\s:/@]+:[^\s@/]+(?=@)"),
    ("password", r"(?i)(?<=authorization: basic )[A-Za-z0-9+/]{8,}=*"),
    ("password", rf"(?i)(?:{'|'.join(_NAMES)}){_IS}(?P<secret>(?!{_REPLACED})[^\s\"',;]{{6,}})"),
    ("token", rf"(?i)(?:{'|'.join(_VAGUE_NAMES)}){_IS}(?P<secret>(?=[^\s\"',;]*\d)[A-Za-z0-9._~+/=-]{{16,}})"),
]
_PATTERNS = [(name, re.compile(shape)) for name, shape in _SHAPES]

# A text without any of these, in upper or lower case, has no credentials. Most texts need no more than this test.
_HINTS = (
    *("private key", "mc_", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_"),
    *("ghr_", "github_pat_", "xox", "aiza", "eyj", "bearer ", "basic ", "://", "api_key", "api-key"),
    *("api key", "apikey"),
    *(name for name in (*_NAMES, *_VAGUE_NAMES) if "?" not in name),
)


def scrub(text: str) -> tuple[str, list[str]]:
    """The text without credentials, and the kinds that were found."""
    folded = text.lower()
    for hint in _HINTS:
        if hint in folded:
            return _redact(text)
    return text, []


def scrub_all(value: Any) -> tuple[Any, list[str]]:
    """The same for every text in a list or a document, names included."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        parts = [scrub_all(part) for part in value]
        return [part for part, _ in parts], [kind for _, found in parts for kind in found]
    if isinstance(value, dict):
        pairs = [(scrub(name), scrub_all(part)) for name, part in value.items()]
        kinds = [kind for name, part in pairs for kind in [*name[1], *part[1]]]
        return {name: part for (name, _), (part, _) in pairs}, kinds
    return value, []


def _redact(text: str) -> tuple[str, list[str]]:
    found: list[str] = []
    for name, pattern in _PATTERNS:

        def replace(match: re.Match[str], name: str = name) -> str:
            found.append(name)
            start = match.start("secret") if "secret" in match.re.groupindex else match.start()
            return match.string[match.start() : start] + REDACTED.format(name)

        text = pattern.sub(replace, text)
    return text, found
