"""/overview: an instance at a glance, and where to go from there."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.formats import date_format
from django.views.decorators.http import require_GET

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance
from instances.warnings import warnings_for
from memories.days import Day, midnight
from memories.listing import Totals
from memories.overview import COUNTED_UP_TO, MANY, Overview, overview_of
from memories.vocabulary import Category
from memoryconsole import health

# Sizes of bars in SVG units; the page stretches them.
SLOT, BAR, HIGHEST = 10, 7, 100
LOWEST = 3


@dataclass(frozen=True, slots=True)
class Line:
    """A number of things to do, with words for one and for many, and a link to them."""

    n: int
    one: str
    many: str
    href: str
    icon: str
    level: str = ""
    at_least: bool = False
    """Not everything was counted."""

    @property
    def number(self) -> str:
        return f"{self.n:,}+" if self.at_least and self.n <= MANY else _number(self.n, MANY)

    @property
    def text(self) -> str:
        return self.one if self.n == 1 else self.many


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: int
    height: int
    day: Day
    width: int = BAR


@dataclass(frozen=True, slots=True)
class Chart:
    """Days as bars, scaled to the highest one."""

    days: list[Day]

    @property
    def total(self) -> int:
        return sum(day.n for day in self.days)

    @property
    def busiest(self) -> Day:
        return max(self.days, key=lambda day: day.n)

    @property
    def middle(self) -> Day:
        return self.days[len(self.days) // 2]

    @property
    def width(self) -> int:
        return SLOT * len(self.days)

    @property
    def since(self) -> str:
        """The first day, in the format of the list's filters."""
        return midnight(self.days[0].date).strftime("%Y-%m-%dT%H:%M")

    @property
    def in_words(self) -> str:
        most = self.busiest
        return f"{self.total:,} in {len(self.days)} days, most on {date_format(most.date, 'j F')}: {most.n:,}."

    @property
    def bars(self) -> Iterator[Bar]:
        for place, day in enumerate(self.days):
            if day.n:
                height = max(LOWEST, round(HIGHEST * day.n / self.busiest.n))
                yield Bar(place * SLOT + (SLOT - BAR) / 2, HIGHEST - height, height, day)


@dataclass(frozen=True, slots=True)
class Share:
    """A category, with the length of its bar in percent of the largest one."""

    category: str
    title: str
    n: int
    length: float


@require_GET
@about_instance
def overview_page(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    found = overview_of(scope)
    context = {
        "overview": found,
        "warnings": warnings_for(scope.instance),
        "worker": health.worker(),
        "lines": _lines(scope.instance.slug, found),
        "shares": _shares(found.remembered.totals),
        "added": Chart(found.remembered.added),
        "recalls": Chart(found.used.recalls),
        "numbers": _numbers(found),
        "log_days": scope.instance.recall_log_days,
    }
    return render(request, "memories/overview.html", context)


def _lines(slug: str, found: Overview) -> list[Line]:
    """The things to do, most urgent first, without those that are zero."""
    needs, is_more = found.needs, (found.remembered.without_vector or 0) > COUNTED_UP_TO
    memory, review, pairs, activity = (
        f"{path}?instance={slug}" for path in ("/memory", "/memory/review", "/memory/duplicates", "/activity")
    )
    failed, undecided = "failed in the last 24 hours", "nobody has decided about"
    lines = [
        Line(needs.failed_jobs, f"job {failed}", f"jobs {failed}", f"{activity}&state=failed", "activity", "danger"),
        Line(
            needs.not_embeddable,
            "memory could not be given a vector",
            "memories could not be given a vector",
            f"{memory}&embedding=failed",
            "warning",
            "danger",
            at_least=is_more,
        ),
        Line(
            needs.late,
            "memory older than an hour has no vector yet",
            "memories older than an hour have no vector yet",
            f"{memory}&embedding=pending",
            "clock",
            "warn",
            at_least=is_more,
        ),
        Line(needs.waiting, "memory waits for review", "memories wait for review", review, "inbox"),
        Line(
            needs.conflicts,
            f"possible conflict {undecided}",
            f"possible conflicts {undecided}",
            f"{pairs}&kind=conflict",
            "merge",
        ),
        Line(
            needs.duplicates,
            f"possible duplicate {undecided}",
            f"possible duplicates {undecided}",
            f"{pairs}&kind=duplicate",
            "copies",
        ),
    ]
    return [line for line in lines if line.n]


def _shares(totals: Totals) -> list[Share]:
    most = max(totals.by_category.values(), default=0) or 1
    counted = [(category, totals.by_category.get(category.value, 0)) for category in Category]
    return [Share(each.value, str(each.label), n, round(100 * n / most, 1)) for each, n in counted]


def _numbers(found: Overview) -> dict[str, str]:
    """Numbers that were counted up to a limit, and differences of them to the total."""
    total, missing = found.remembered.totals.all, found.remembered.without_vector
    return {
        "pinned": _number(found.remembered.pinned, COUNTED_UP_TO),
        "expiring": _number(found.needs.expiring, MANY),
        "attachments": _number(found.attachments, COUNTED_UP_TO),
        "looked_at": _looked_at(found.used.outcomes.all),
        "ready": "" if missing is None else _rest(total, missing),
        "never": _rest(total, found.used.recalled),
    }


def _number(n: int, most: int) -> str:
    return f"{most:,}+" if n > most else f"{n:,}"


def _looked_at(n: int) -> str:
    return f"the latest {n:,}" if n == COUNTED_UP_TO else f"{n:,}"


def _rest(total: int, n: int) -> str:
    return f"< {total - COUNTED_UP_TO:,}" if n > COUNTED_UP_TO else f"{max(0, total - n):,}"
