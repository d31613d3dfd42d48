"""Errors of the caller, as exceptions with an HTTP status.

The domain raises them; the API answers them as JSON, pages as a page, commands as a message on stderr.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memoryconsole.counting import size_of


class Problem(Exception):
    status = 400
    code = "invalid"
    detail = "The request is invalid."

    def __init__(self, detail: str = "", *, code: str = "", extra: Mapping[str, Any] | None = None) -> None:
        self.detail = detail or self.detail
        self.code = code or self.code
        self.extra = dict(extra or {})
        super().__init__(self.detail)


class Invalid(Problem):
    """Invalid input, with the reasons by field; names are the public ones (camelCase)."""

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        self.errors = {field: list(reasons) for field, reasons in errors.items()}
        super().__init__(f"{next(iter(self.errors))}: {self.reason}")

    @property
    def reason(self) -> str:
        """The first reason, for callers that send only one field."""
        return next(iter(self.errors.values()))[0]


class Taken(Invalid):
    """A name that is in use already."""

    status = 409
    code = "taken"


class InstanceRequired(Problem):
    code = "instance_id_required"
    detail = "instanceId is required"


class NotAllowed(Problem):
    status = 403
    code = "not_allowed"
    detail = "You may not do this."


class NotFound(Problem):
    """The same answer for what does not exist and for what belongs to somebody else."""

    status = 404
    code = "not_found"
    detail = "Not found."


class TooLarge(Problem):
    status = 413
    code = "too_large"

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"{what} may have at most {size_of(most)}.")


class Unreadable(Problem):
    code = "unreadable"
    detail = "The request cannot be read."


class Conflict(Problem):
    status = 409
    code = "conflict"
    detail = "The data has changed in the meantime."
