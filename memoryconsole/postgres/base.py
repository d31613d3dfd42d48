"""Django's PostgreSQL backend. Without `DATABASE_URL` it starts the embedded server; it also saves work per request."""

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

# The driver parses a statement again each time if it is longer than this or has more parameters. The search statement
# is longer than its default, and the statement that saves a memory has more parameters.
_queries.MAX_CACHED_STATEMENT_LENGTH = 32_768
_queries.MAX_CACHED_STATEMENT_PARAMS = 200

# How many seconds to wait for a connection while the database is away.
IN_AN_OUTAGE = 1.0


class SchemaEditor(schema.DatabaseSchemaEditor):
    """Does not prepare statements, because migrations may send several in one string."""

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
        """Use the driver's loader of times. Django's takes as long as the rest of a row; in UTC both return the same.

        The pool calls this method once per connection. Django's stubs leave it out; those they have run per request.
        """
        connection.adapters.register_loader("timestamptz", TimestamptzLoader)
        return bool(super()._configure_connection(connection))  # type: ignore[misc]

    def create_cursor(self, name: str | None = None) -> Any:
        """Without Django's check, for each cursor, that the loader of times has the right zone."""
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
        """Replace pooled connections to a server that has died, so that no request notices.

        Django's CONN_HEALTH_CHECKS would query the server each time, which doubled the cost of a small request.
        """
        connection = super().get_new_connection(conn_params)
        while self.pool and hung_up(connection):
            connection.close()
            try:
                # Before the pool tries to reconnect: after a failed attempt it pauses for seconds.
                revive()
            finally:
                self.pool.putconn(connection)
            if not settings.EMBEDDED_POSTGRES:
                self._wait_at_most(IN_AN_OUTAGE)
            connection = super().get_new_connection(conn_params)
        self._wait_at_most(self.settings_dict["OPTIONS"].get("pool", {}).get("timeout"))
        return connection

    def _wait_at_most(self, seconds: float) -> None:
        """Limit the wait for a connection: in an outage, waiting requests would hold all threads of the web server."""
        if self.pool:
            self.pool.timeout = seconds


def revive() -> bool:
    """Start the embedded server again if it has died. Returns whether that was necessary."""
    try:
        return settings.EMBEDDED_POSTGRES and embedded.revive()
    except embedded.EmbeddedPostgresError as error:
        raise OperationalError(str(error)) from error


def hung_up(connection: Connection[Any]) -> bool:
    """Whether the server has closed the connection: only then is there anything to read on an idle one."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
