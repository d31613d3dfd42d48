"""Every endpoint once, with valid input, for test_isolation and test_error_shape."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from conversations.models import Conversation
from instances.models import Instance
from memories.attachments import attach
from memories.draft import MemoryChanges
from memories.embedding.backfill import ask_for_embedding
from memories.models import Attachment, DuplicatePair, Job, Memory, Procedure
from memories.recall.recalling import RecallRequest, recall
from memories.store import change
from tests.factories import (
    make_conversation,
    make_failed_job,
    make_memory,
    make_pair,
    make_procedure,
    make_waiting,
    scope_of,
)

KINDS = ("memory", "conversation", "procedure", "job", "failed", "waiting", "pair", "attachment")


@dataclass(frozen=True)
class World:
    """One instance with something in it."""

    instance: Instance
    memory: Memory
    conversation: Conversation
    job: Job
    procedure: Procedure
    recall: UUID | None
    failed: Job
    waiting: Memory
    pair: DuplicatePair
    attachment: Attachment

    @property
    def slug(self) -> str:
        return self.instance.slug


def populate(instance: Instance) -> World:
    memory = make_memory(instance, f"A secret of {instance.slug}")
    change(scope_of(instance), memory.id, MemoryChanges(content=f"Another secret of {instance.slug}"))
    conversation = make_conversation(instance, "Hello", "Good morning")
    procedure = make_procedure(instance, f"A secret way of {instance.slug}")
    recalled = recall(scope_of(instance), RecallRequest(query="What is the secret?"))
    return World(
        instance,
        memory,
        conversation,
        job=ask_for_embedding(scope_of(instance)),
        procedure=procedure,
        recall=recalled.id,
        failed=make_failed_job(instance),
        waiting=make_waiting(instance, f"A waiting secret of {instance.slug}", memory),
        pair=make_pair(memory, make_memory(instance, f"The same secret of {instance.slug}")),
        attachment=attach(scope_of(instance), memory.id, io.BytesIO(b"A secret file"), name="secret.txt"),
    )


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    body: Callable[[World], dict[str, Any]] | None = None
    status: int = 200
    takes_instance: bool = True
    for_superadmins: bool = field(default=False)
    only_asks: bool = False
    """Although it is a POST."""

    def url(self, world: World) -> str:
        return self.path.format(
            slug=world.slug, recall=world.recall, **{kind: getattr(world, kind).id for kind in KINDS}
        )

    def __str__(self) -> str:
        return f"{self.method} {self.path.split('?')[0]}"

    @property
    def writes(self) -> bool:
        return self.method != "GET" and not self.only_asks

    @property
    def needs_token(self) -> bool:
        return self.method != "GET"


CALLS = [
    Call("GET", "/api/v1/memories?instanceId={slug}"),
    Call("POST", "/api/v1/memories", lambda w: {"instanceId": w.slug, "content": "New"}, 201),
    Call("POST", "/api/v1/memories/bulk", lambda w: {"instanceId": w.slug, "memories": [{"content": "New"}]}, 201),
    Call("POST", "/api/v1/memories/bulk-delete", lambda w: {"instanceId": w.slug, "ids": [str(w.memory.id)]}),
    Call("GET", "/api/v1/memories/{memory}?instanceId={slug}"),
    Call("GET", "/api/v1/memories/{memory}/similar?instanceId={slug}"),
    Call("PATCH", "/api/v1/memories/{memory}?instanceId={slug}", lambda w: {"pinned": True}),
    Call("DELETE", "/api/v1/memories/{memory}?instanceId={slug}"),
    Call("GET", "/api/v1/memories/{memory}/history?instanceId={slug}"),
    Call("GET", "/api/v1/memories/{memory}/attachments?instanceId={slug}"),
    Call("POST", "/api/v1/memories/{memory}/attachments?instanceId={slug}", status=201),
    Call("GET", "/api/v1/memories/{memory}/attachments/{attachment}?instanceId={slug}"),
    Call("DELETE", "/api/v1/memories/{memory}/attachments/{attachment}?instanceId={slug}"),
    Call("POST", "/api/v1/memories/{memory}/restore", lambda w: {"instanceId": w.slug, "version": 1}),
    Call("POST", "/api/v1/recall", lambda w: {"instanceId": w.slug, "query": "secret"}, only_asks=True),
    Call("GET", "/api/v1/recalls?instanceId={slug}"),
    Call("GET", "/api/v1/recalls/{recall}?instanceId={slug}"),
    Call("GET", "/api/v1/recalls/{recall}/why?instanceId={slug}&memoryId={memory}"),
    Call("GET", "/api/v1/reviews?instanceId={slug}"),
    Call("POST", "/api/v1/reviews", lambda w: {"instanceId": w.slug, "action": "approve", "ids": [str(w.waiting.id)]}),
    Call("POST", "/api/v1/memories/{waiting}/review", lambda w: {"instanceId": w.slug, "action": "keep"}),
    Call("GET", "/api/v1/duplicates?instanceId={slug}"),
    Call("POST", "/api/v1/duplicates/{pair}", lambda w: {"instanceId": w.slug, "action": "merge"}),
    Call("GET", "/api/v1/conversations?instanceId={slug}"),
    Call("POST", "/api/v1/conversations", lambda w: {"instanceId": w.slug}, 201),
    Call("GET", "/api/v1/conversations/{conversation}?instanceId={slug}"),
    Call(
        "POST",
        "/api/v1/conversations/{conversation}/messages",
        lambda w: {"instanceId": w.slug, "messages": [{"role": "user", "content": "Hi"}]},
        201,
    ),
    Call("GET", "/api/v1/procedures?instanceId={slug}"),
    Call("POST", "/api/v1/procedures", lambda w: {"instanceId": w.slug, "name": "New", "steps": ["One"]}, 201),
    Call("GET", "/api/v1/procedures/{procedure}?instanceId={slug}"),
    Call("PATCH", "/api/v1/procedures/{procedure}?instanceId={slug}", lambda w: {"trigger": "New"}),
    Call("DELETE", "/api/v1/procedures/{procedure}?instanceId={slug}"),
    Call("POST", "/api/v1/procedures/{procedure}/used", lambda w: {"instanceId": w.slug}),
    Call("GET", "/api/v1/conversations/{conversation}/context?instanceId={slug}"),
    Call("POST", "/api/v1/conversations/{conversation}/close", lambda w: {"instanceId": w.slug}),
    Call("GET", "/api/v1/audit?instanceId={slug}"),
    Call("GET", "/api/v1/export?instanceId={slug}"),
    Call("POST", "/api/v1/import?instanceId={slug}"),
    Call("GET", "/api/v1/tags?instanceId={slug}"),
    Call("GET", "/api/v1/forget?instanceId={slug}&owner=alice", for_superadmins=True),
    Call("POST", "/api/v1/forget", lambda w: {"instanceId": w.slug, "owner": "alice"}, for_superadmins=True),
    Call("POST", "/api/v1/jobs", lambda w: {"instanceId": w.slug, "kind": "embed-memories"}, 202),
    Call("GET", "/api/v1/jobs?instanceId={slug}"),
    Call("GET", "/api/v1/jobs/{job}?instanceId={slug}"),
    Call("POST", "/api/v1/jobs/{failed}/retry", lambda w: {"instanceId": w.slug}, 202),
    Call("GET", "/api/v1/instances/{slug}", takes_instance=False),
    Call("PATCH", "/api/v1/instances/{slug}", lambda w: {"name": "New name"}, takes_instance=False),
    Call("DELETE", "/api/v1/instances/{slug}?confirm={slug}", takes_instance=False, for_superadmins=True),
]
# These name no instance: a stranger sees an empty list, and may not create.
WITHOUT_INSTANCE = [
    Call("GET", "/api/v1/instances", takes_instance=False),
    Call("POST", "/api/v1/instances", lambda w: {"slug": "new-bot"}, 201, takes_instance=False),
]
