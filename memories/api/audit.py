"""`/api/v1/audit`: who did what to which memories, and when."""

from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from memories.api.opening import from_query
from memories.audit_log import AuditFilters, EntryJson, entry_json, list_entries
from memoryconsole.endpoints import Endpoint
from memoryconsole.inputs import Cursor, Limit
from memoryconsole.schema import documented


class AuditQuery(AuditFilters):
    limit: Limit = 20
    cursor: Cursor = ""


class AuditJson(TypedDict):
    limit: int
    nextCursor: str | None
    entries: list[EntryJson]


class Audit(Endpoint):
    @documented(
        "listAudit",
        "Who did what to which memories, the latest first; never what a memory says",
        query=AuditQuery,
        answers={200: AuditJson},
    )
    def get(self, request: Request) -> Response:
        scope, wanted = from_query(request, AuditQuery)
        found = list_entries(scope, wanted, limit=wanted.limit, cursor=wanted.cursor)
        answer: AuditJson = {
            "limit": wanted.limit,
            "nextCursor": found.next_cursor,
            "entries": [entry_json(each.row, each.memory_ids, each.memories) for each in found.entries],
        }
        return Response(answer)
