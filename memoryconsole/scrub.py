"""Replaces credentials in texts before these are stored, logged or returned.

Each pattern is a shape that hardly anything but a secret has; ordinary words and ids are left alone. No pattern may
read to the end of a text from every place where it could begin: one long text would hold up the whole process.
"""

import re
from typing import Any

REDACTED = "[redacted {}]"

# Names of secrets. Anything after one of the first is a secret; after the vague ones only what looks like one.
_NAMES = (
    *("password", "passwd", "passphrase", "api[_ -]?key", "secret[_ -]?key", "secret[_ -]?access[_ -]?key"),
    *("private[_ -]?key", "account[_ -]?key", "client[_ -]?secret", "passwort", "kennwort", "mot de passe"),
    *("contraseña", "contrasenya", "senha", "wachtwoord", "hasło", "heslo", "jelszó", "lösenord", "passord"),
    *("adgangskode", "salasana", "şifre", "parola", "mật khẩu", "пароль", "кодове слово", "κωδικός πρόσβασης"),
    *("كلمة المرور", "كلمة السر", "סיסמה", "סיסמא", "पासवर्ड", "รหัสผ่าน"),
    *("密码", "密碼", "パスワード", "비밀번호"),
)
_SHORT_NAMES = ("pwd", "pw")
_VAGUE_NAMES = ("token", "secret", "credential")
_ANY_NAME = rf"(?:{'|'.join(_NAMES)})"
_SECRET_NAME = re.compile(rf"(?i){_ANY_NAME}\Z")
_VAGUE_NAME = re.compile(rf"(?i)(?:{'|'.join(_VAGUE_NAMES)})\Z")
# What separates name and secret, also in a JSON document, in JSON quoted inside another text, or with a full-width
# colon.
_IS = r"\\?[\"'”“»’」』`]?\s*[:=：]\s*"
_QUOTE = r"(?:\\?[\"'])?"
# In a sentence: "the password for the guests is …".
_FOR = r"(?:\s+(?:\([^\n()]{1,40}\)|(?:for|of|to|für|vom|zum|pour|para|per|voor)\s[^\n:=：.,;]{1,40}?))?"
_SAID = r"(?:\s+(?:is|ist|lautet|est|es|è|é)\b:?\s+|\s*[:=：]\s*)"
_SHORTEST = 6
# A secret that is replaced already: texts are scrubbed again whenever they are edited, merged or imported.
_REPLACED = r"\[redacted [A-Za-z ]+\]"
_LIKE_PASSWORD = (
    r"(?=[^\s\"',;]{0,200}\d)(?=[^\s\"',;]{0,200}[^\W\d_])"  # noqa: S105
    r"[^\s\"',;/~][^\s\"',;]{4,}[^\s\"',;.!?)]"
)
_LIKE_TOKEN = r"(?=[^\s\"',;]{0,200}\d)[A-Za-z0-9._~+/=-]{16,}"  # noqa: S105
# Names of hashes and encodings: "the password is sha256" is no password.
_METHODS = r"(?:base|sha|md|aes|utf|argon|bcrypt|pbkdf|\d+-)"
_PRIVATE_KEY = r"[A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
_SHAPES = [
    ("private key", rf"-----BEGIN {_PRIVATE_KEY}[\s\S]*?(?:-----END {_PRIVATE_KEY}|\Z)"),
    ("Memory Console key", r"\bmc_[0-9a-f]{8}_[A-Za-z0-9-]{20,}"),
    ("API key", r"\b(?:sk|pk|rk)[-_](?:[A-Za-z]+[-_])*[A-Za-z0-9_-]{20,}"),
    ("AWS key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})"),
    ("GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{36,}"),
    ("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("Slack token", r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}"),
    ("Slack address", r"(?<=hooks\.slack\.com/services/)[A-Za-z0-9]+/[A-Za-z0-9]+/[A-Za-z0-9]{16,}"),
    ("Google key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("token", r"(?<![\w-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("bearer token", r"(?i)(?<=\bbearer )[A-Za-z0-9._~+/-]{16,}=*"),
    ("password", r"(?i)(?<=://)[^\s:/@]*:[^\s@/]+(?=@)"),
    ("password", r"(?i)(?<=authorization: basic )[A-Za-z0-9+/]{8,}=*"),
]
_NAMED = [
    # Between quotes a secret may contain spaces, commas and escaped quotes.
    (
        "password",
        rf"(?i){_ANY_NAME}{_IS}(?P<quote>\\?[\"'`])"
        rf"(?P<secret>(?!{_REPLACED})(?:(?!(?P=quote))(?:\\.|[^\n\\])){{6,100}})(?=(?P=quote))",
    ),
    ("password", rf"(?i){_ANY_NAME}{_IS}[“„«‘「『](?P<secret>(?!{_REPLACED})[^\n“”»’」』]{{6,100}})(?=[“”»’」』])"),
    ("password", rf"(?i){_ANY_NAME}{_IS}{_QUOTE}(?P<secret>(?!{_REPLACED})[^\s\"',;\\<>“”„«»`]{{6,}})"),
    (
        "password",
        rf"(?i)(?:{_ANY_NAME}|\b(?:{'|'.join(_SHORT_NAMES)})\b){_FOR}{_SAID}[\"'“„«`]?"
        rf"(?P<secret>(?!{_METHODS}){_LIKE_PASSWORD})",
    ),
    ("token", rf"(?i)(?:{'|'.join(_VAGUE_NAMES)}){_IS}{_QUOTE}(?P<secret>{_LIKE_TOKEN})"),
]
Patterns = list[tuple[str, re.Pattern[str]]]
_SHAPE_PATTERNS: Patterns = [(kind, re.compile(shape)) for kind, shape in _SHAPES]
_NAMED_PATTERNS: Patterns = [(kind, re.compile(shape)) for kind, shape in _NAMED]

# A text without any of these, in upper or lower case, has no credentials. Most texts need no more than this test.
_SHAPE_HINTS = (
    *("private key", "mc_", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_"),
    *("ghr_", "github_pat_", "glpat-", "npm_", "hf_", "xox", "xapp-", "slack.com/", "aiza", "eyj", "bearer "),
    *("basic ", "://"),
)
_SPELLINGS = (name.replace("[_ -]?", gap) for name in _NAMES for gap in ("", "_", "-", " "))
_NAME_HINTS = (*_SHORT_NAMES, *_VAGUE_NAMES, *dict.fromkeys(_SPELLINGS))


def scrub(text: str) -> tuple[str, list[str]]:
    """The text without credentials, and the kinds that were found."""
    folded = text.lower()
    found: list[str] = []
    for hints, patterns in ((_SHAPE_HINTS, _SHAPE_PATTERNS), (_NAME_HINTS, _NAMED_PATTERNS)):
        for hint in hints:
            if hint in folded:
                text = _redact(text, patterns, found)
                break
    return text, found


def scrub_all(value: Any) -> tuple[Any, list[str]]:
    """The same for every text in a list or a document, names included."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return _joined([scrub_all(part) for part in value])
    if isinstance(value, dict):
        pairs = [(scrub(name), _scrub_named(name, part)) for name, part in value.items()]
        kinds = [kind for name, part in pairs for kind in [*name[1], *part[1]]]
        return {name: part for (name, _), (part, _) in pairs}, kinds
    return value, []


def _scrub_named(name: str, value: Any) -> tuple[Any, list[str]]:
    """Scrub a value of a JSON object by its name: a password alone looks like any other text, or like a number."""
    if isinstance(value, list):
        return _joined([_scrub_named(name, part) for part in value])
    if isinstance(value, dict | float | bool | None):
        return scrub_all(value)
    kind = _kind_named(name, str(value))
    return (REDACTED.format(kind), [kind]) if kind else scrub_all(value)


def _joined(parts: list[tuple[Any, list[str]]]) -> tuple[list[Any], list[str]]:
    return [part for part, _ in parts], [kind for _, found in parts for kind in found]


def _kind_named(name: str, value: str) -> str:
    if len(value) < _SHORTEST or re.fullmatch(_REPLACED, value):
        return ""
    if _SECRET_NAME.search(name):
        return "password"
    return "token" if _VAGUE_NAME.search(name) and re.fullmatch(_LIKE_TOKEN, value) else ""


def _redact(text: str, patterns: Patterns, found: list[str]) -> str:
    for kind, pattern in patterns:

        def replace(match: re.Match[str], kind: str = kind) -> str:
            found.append(kind)
            start = match.start("secret") if "secret" in match.re.groupindex else match.start()
            return match.string[match.start() : start] + REDACTED.format(kind)

        text = pattern.sub(replace, text)
    return text
