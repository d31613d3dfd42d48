"""/recall/log: the log of recalls, newest first."""

from typing import Annotated
from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, render_part
from conversations.store import conversations_by_id
from memories.draft import Name
from memories.filters import EmptyIsNone
from memories.models import Recall
from memories.paging import Order, name_of_list, part_of_list
from memories.recall.log import recalls_of
from memories.views.recalling import MODES
from memoryconsole.errors import Invalid
from memoryconsole.inputs import Cursor, Input, read_or_default

SIZE = 50
NEWEST = Order(("id",))


class LogFilters(Input):
    user_id: Name = ""
    conversation_id: Annotated[UUID | None, EmptyIsNone] = None
    memory_id: Annotated[UUID | None, EmptyIsNone] = None
    after: Cursor = ""

    @property
    def narrows(self) -> bool:
        return bool(self.user_id or self.conversation_id or self.memory_id)


@require_GET
@about_instance
def recall_log(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    filters, problem = _filters(request)
    try:
        rows, older = _part(scope, filters)
    except Invalid:  # a cursor of another list: start at the beginning
        filters = filters.model_copy(update={"after": ""})
        rows, older = _part(scope, filters)
    context = {
        "rows": [(row, MODES[row.search_mode]) for row in rows],
        "older": older,
        "is_first": not filters.after,
        "filters": filters,
        "problem": problem,
        "conversations": conversations_by_id(scope, [row.conversation_id for row in rows]),
        "keeps_log": scope.instance.recall_log_days > 0,
    }
    return render_part(request, "recall/log.html", "log", context)


def _filters(request: ConsoleRequest) -> tuple[LogFilters, Invalid | None]:
    names = ("userId", "conversationId", "memoryId", "after")
    return read_or_default(LogFilters, {name: request.GET[name] for name in names if name in request.GET})


def _part(scope: Scope, filters: LogFilters) -> tuple[list[Recall], str | None]:
    values = filters.model_dump(exclude={"after"})
    name = name_of_list("recall log", scope.instance.id, values)
    rows = recalls_of(scope, **values).defer("explanation")
    return part_of_list(rows, NEWEST, name, limit=SIZE, cursor=filters.after)
