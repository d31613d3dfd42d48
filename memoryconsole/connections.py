"""The database connection of this thread."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InternalError, OperationalError, connection, transaction

logger = logging.getLogger(__name__)


def release_connection() -> None:
    """Give the connection back to the pool before a network call; the next query takes one again."""
    if not connection.in_atomic_block:
        connection.close()


@contextmanager
def without_waiting_for_the_disk() -> Iterator[None]:
    """A transaction whose commit does not wait for the disk, for data that can be made again.

    It is lost as a whole if the machine crashes right after it. Inside another transaction this changes nothing.
    """
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = off")
        yield


@contextmanager
def dispensable(what: str) -> Iterator[None]:
    """For a write that a read request makes on the side: if it fails, on a standby or a full disk, the read goes on."""
    try:
        with transaction.atomic():
            yield
    except (InternalError, OperationalError) as error:
        logger.warning("%s could not be noted: %s", what, type(error).__name__)
