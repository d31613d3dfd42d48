"""The database connection of this thread."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InternalError, OperationalError, connection, transaction

logger = logging.getLogger(__name__)


def release_connection() -> None:
    """Give it back to the pool before waiting for somebody else's network; the next query takes one again."""
    if not connection.in_atomic_block:
        connection.close()


@contextmanager
def without_waiting_for_the_disk() -> Iterator[None]:
    """A transaction for what can be made again: should the machine fail in the next moment, none of it was done.

    As a part of somebody else's transaction it waits as that one does.
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
    """For a note made while reading: a database that takes no changes, or whose disk is full, can still be read."""
    try:
        with transaction.atomic():
            yield
    except (InternalError, OperationalError) as error:
        logger.warning("%s could not be noted: %s", what, type(error).__name__)
