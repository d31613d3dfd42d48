"""What somebody's clock shows."""

from datetime import UTC, datetime, tzinfo

from django.utils import timezone


def local_time(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """In the reader's zone or another one, or in UTC at the ends of the calendar, where that has no year any more."""
    try:
        return timezone.localtime(moment, zone)
    except OverflowError:
        return moment.astimezone(UTC)
