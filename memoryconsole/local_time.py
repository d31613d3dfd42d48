"""What the reader's clock shows."""

from datetime import UTC, datetime

from django.utils import timezone


def local_time(moment: datetime) -> datetime:
    """In the reader's zone, or in UTC at the ends of the calendar, where that zone has no year any more."""
    try:
        return timezone.localtime(moment)
    except OverflowError:
        return moment.astimezone(UTC)
