"""Times in the reader's time zone."""

from datetime import UTC, datetime, tzinfo

from django.utils import timezone


def local_time(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """The moment in the reader's or the given zone; in UTC if that would be before year 1 or after year 9999."""
    try:
        return timezone.localtime(moment, zone)
    except OverflowError:
        return moment.astimezone(UTC)
