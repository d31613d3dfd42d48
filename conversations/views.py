"""/conversations: the list, and a page for each with its messages and memories."""

from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from accounts.access import Scope
from accounts.pages import (
    SIZES,
    ConsoleRequest,
    about_instance,
    render_part,
    tell_of_other_page,
    told_page_number,
    told_page_size,
)
from conversations.listing import (
    LINKED_SHOWN,
    ConversationFilters,
    list_page,
    memories_from,
    memories_per_conversation,
    recent_channels,
    transcript_page,
)
from conversations.store import find_conversation
from memories.models import Memory
from memoryconsole.errors import Invalid
from memoryconsole.inputs import read_or_default


@require_GET
@about_instance
def conversation_list(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    filters, invalid = _read_filters(request)
    number, size = told_page_number(request), told_page_size(request, "conversations")
    page = list_page(scope, filters, number=number, size=size, anchor=request.GET.get("anchor", ""))
    tell_of_other_page(request, number, page.number)
    context = {
        "page": page,
        "sizes": SIZES,
        "filters": filters,
        "invalid": invalid,
        "is_filtered": bool(filters.channel or filters.user),
        "channels": recent_channels(scope),
        "linked": memories_per_conversation(scope, page.rows),
    }
    return render_part(request, "conversations/list.html", "conversations", context)


@require_GET
@about_instance
def conversation_detail(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    conversation = find_conversation(scope, id)
    message = "" if "page" in request.GET else request.GET.get("message", "")
    linked = memories_from(scope, conversation)
    context = {
        "conversation": conversation,
        "page": transcript_page(scope, conversation, number=told_page_number(request), message=message),
        "memories": linked[:LINKED_SHOWN],
        "has_more": len(linked) > LINKED_SHOWN,
        "by_message": _by_message(linked[:LINKED_SHOWN]),
    }
    return render_part(request, "conversations/detail.html", "transcript", context)


def _by_message(linked: list[Memory]) -> dict[UUID, list[Memory]]:
    found: dict[UUID, list[Memory]] = {}
    for memory in linked:
        for id in memory.source_message_ids:
            found.setdefault(id, []).append(memory)
    return found


def _read_filters(request: ConsoleRequest) -> tuple[ConversationFilters, Invalid | None]:
    values = {name: request.GET[name] for name in ("channel", "user") if name in request.GET}
    return read_or_default(ConversationFilters, values)
