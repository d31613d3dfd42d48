"""Template tags for icons, times and importance, and a filter for looking up a key."""

from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from memoryconsole.local_time import local_time

register = template.Library()


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', static("icons.svg"), name)


@register.simple_tag
def when(moment: datetime | None) -> SafeString | str:
    """How long ago, or how soon, in words; the exact time in the reader's zone on hover."""
    if moment is None:
        return "never"
    local = local_time(moment)
    exact = f"{date_format(local, 'j F Y, H:i:s')} {local.tzname()}"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, _in_words(moment))


def _in_words(moment: datetime) -> str:
    now = timezone.now()
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 60:
        return "just now" if seconds >= 0 else "in a moment"
    if abs(seconds) > 60 * 86400:
        return date_format(local_time(moment), "j M Y")
    words = timesince(min(moment, now), max(moment, now), depth=1)
    return f"{words} ago" if seconds > 0 else f"in {words}"


@register.simple_tag
@cache
def importance(value: int) -> SafeString:
    """Ten bars, so many of them filled. Cached, because a list has one in every row."""
    bars = [f"M{x}.8 0h8.4v10h-8.4z" for x in range(0, 100, 10)]
    return format_html(
        '<span class="meter" title="Importance {} of 10"><b>{}</b>'
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<path class="on" d="{}"/><path class="off" d="{}"/></svg></span>',
        value,
        value,
        "".join(bars[:value]),
        "".join(bars[value:]),
    )


@register.filter
def get(mapping: dict[Any, Any], key: Any) -> Any:
    return mapping.get(key)
