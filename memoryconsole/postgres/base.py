"""Django's PostgreSQL backend, plus one thing: without `DATABASE_URL` it brings its own server along."""

import select
from types import TracebackType
from typing import Any, Self

from django.conf import settings
from django.db.backends.postgresql import base, schema
from django.db.utils import OperationalError
from psycopg import Connection, _queries
from psycopg import OperationalError as DriverError
from psycopg.types.datetime import TimestamptzLoader

from memoryconsole import embedded
from memoryconsole.postgres import halfvec  # noqa: F401, which tells the driver how to send vectors
from memoryconsole.postgres.cursor import QuickCursor

# The driver reads a statement anew each time when it is longer than this, or has more parameters: the one that searches
# is, and the one that saves has.
_queries.MAX_CACHED_STATEMENT_LENGTH = 32_768
_queries.MAX_CACHED_STATEMENT_PARAMS = 200

# For a connection; until there is one again.
IN_AN_OUTAGE = 1.0


class SchemaEditor(schema.DatabaseSchemaEditor):
    """Migrations may send several statements in one string, which a prepared statement may not contain."""

    def __enter__(self) -> Self:
        self.connection.ensure_connection()
        driver = self.connection.connection
        self._prepare_threshold, driver.prepare_threshold = driver.prepare_threshold, None
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self.connection.connection:
            self.connection.connection.prepare_threshold = self._prepare_threshold


class DatabaseWrapper(base.DatabaseWrapper):
    SchemaEditorClass = SchemaEditor

    def get_connection_params(self) -> dict[str, Any]:
        if settings.EMBEDDED_POSTGRES:
            address = embedded.ensure_running()
            self.settings_dict |= {"HOST": address.host, "PORT": address.port, "USER": address.user}
        return super().get_connection_params()

    def _configure_connection(self, connection: Connection[Any]) -> bool:
        """Django's own loader of times takes as long as the rest of a row; the driver's answers are the same in UTC.

        The pool calls this once for a new connection. Everything that Django's stubs know of, which leave this out, is
        called once for every request.
        """
        connection.adapters.register_loader("timestamptz", TimestamptzLoader)
        return bool(super()._configure_connection(connection))  # type: ignore[misc]

    def create_cursor(self, name: str | None = None) -> Any:
        """Without Django's question, each time, whether the loader of times knows the right zone."""
        if name is None:
            return self.connection.cursor()
        return self.connection.cursor(name, scrollable=False, withhold=self.connection.autocommit)

    def make_cursor(self, cursor: Any) -> QuickCursor:
        return QuickCursor(cursor, self)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        try:
            return self._live_connection(conn_params)
        except (OperationalError, DriverError):
            if not revive():
                self._wait_at_most(IN_AN_OUTAGE)
                raise
            return self._live_connection(conn_params)

    def _live_connection(self, conn_params: dict[str, Any]) -> Any:
        """A pooled connection may be to a server that has died since; no request should notice.

        Django's CONN_HEALTH_CHECKS asks the server each time, which doubled the cost of a small request.
        """
        connection = super().get_new_connection(conn_params)
        while self.pool and hung_up(connection):
            connection.close()
            try:
                # Before the pool replaces it: when its first attempt fails, it pauses for seconds.
                revive()
            finally:
                self.pool.putconn(connection)
            if not settings.EMBEDDED_POSTGRES:
                self._wait_at_most(IN_AN_OUTAGE)
            connection = super().get_new_connection(conn_params)
        self._wait_at_most(self.settings_dict["OPTIONS"].get("pool", {}).get("timeout"))
        return connection

    def _wait_at_most(self, seconds: float) -> None:
        """All requests that wait for a database that is away would be all that the web server can serve at once."""
        if self.pool:
            self.pool.timeout = seconds


def revive() -> bool:
    """Whether there is a server of ours and it had to be started again."""
    try:
        return settings.EMBEDDED_POSTGRES and embedded.revive()
    except embedded.EmbeddedPostgresError as error:
        raise OperationalError(str(error)) from error


def hung_up(connection: Connection[Any]) -> bool:
    """Nobody talks on an idle connection, so anything to read is the other end saying goodbye."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
