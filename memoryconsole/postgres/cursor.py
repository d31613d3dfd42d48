"""Django's cursor without its calls around each statement, unless there are execute wrappers or errors to handle.

Those calls took as long as the driver's own work on a small statement.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper
from psycopg import Error


def _fetching(method: str) -> Callable[["QuickCursor"], Any]:
    def fetch(self: "QuickCursor") -> Any:
        try:
            return getattr(self.cursor, method)()
        except Error:
            with self.db.wrap_database_errors:
                raise

    return fetch


class QuickCursor(CursorWrapper):
    def execute(self, sql: Any, params: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
        if self.db.execute_wrappers or self.db.needs_rollback:
            return super().execute(sql, params)
        try:
            return self.cursor.execute(sql, params)
        except Error:
            with self.db.wrap_database_errors:
                raise

    fetchone = _fetching("fetchone")
    fetchall = _fetching("fetchall")
