"""Users, instances and memories for tests, made by the functions that the product uses."""

from itertools import count
from typing import Any

from cryptography.fernet import Fernet
from django.db import connection
from django.utils import timezone
from pydantic import TypeAdapter

from accounts.access import SHELL, Actor, Scope, open_instance
from accounts.keys import Grants, create_key
from accounts.models import Membership, User
from conversations.models import Conversation
from conversations.store import ConversationDraft, MessageDraft, add_messages, open_conversation
from instances.models import Instance
from instances.store import InstanceDraft, create_instance
from memories.draft import MemoryChanges, MemoryDraft
from memories.embedding.backfill import ask_for_embedding
from memories.models import DuplicatePair, Job, Memory, Procedure
from memories.procedures.store import ProcedureDraft, create_procedure
from memories.store import change, save, save_many
from memories.vocabulary import Review
from memoryconsole.inputs import Moment, read

_numbers = count(1)
PASSWORD = "correct horse battery"


def make_instance(slug: str = "", **settings: Any) -> Instance:
    return create_instance(SHELL, InstanceDraft(slug=slug or f"bot-{next(_numbers)}", **settings))


def store_with_another_encryption_key(instance: Instance, openai_key: str) -> None:
    """Store the key as a server with another FIELD_ENCRYPTION_KEYS would, which this one cannot decrypt."""
    token = Fernet(Fernet.generate_key()).encrypt(openai_key.encode()).decode()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE instances_instance SET openai_key = %s, openai_key_last4 = %s WHERE id = %s",
            [token, openai_key[-4:], instance.id],
        )


def make_user(username: str = "", *instances: Instance, superadmin: bool = False) -> User:
    user = User.objects.create_user(username or f"user{next(_numbers)}", PASSWORD, is_superadmin=superadmin)
    Membership.objects.bulk_create(Membership(user=user, instance=instance) for instance in instances)
    return user


def make_key(*instances: Instance, **grants: bool) -> str:
    """The whole key, as a program would hold it; without instances it reaches all of them."""
    granted = Grants(all_instances=not instances, **grants)
    return create_key(SHELL, name=f"key {next(_numbers)}", instances=instances, grants=granted)[1]


def scope_of(instance: Instance, actor: Actor = SHELL) -> Scope:
    return open_instance(actor, instance.slug)


def make_memory(instance: Instance, content: str = "", **fields: Any) -> Memory:
    """A memory saved as the API saves it. A date in the past, which that refuses, is set afterwards."""
    fields = {"content": content or f"Memory number {next(_numbers)}", **fields}
    expires_at = TypeAdapter(Moment | None).validate_python(fields.pop("expiresAt", None))
    has_expired = expires_at is not None and expires_at <= timezone.now()
    draft = read(MemoryDraft, {**fields, "expiresAt": None if has_expired else expires_at})
    memory = save(scope_of(instance), draft).memory
    if has_expired:
        Memory.objects.filter(pk=memory.pk).update(expires_at=expires_at)
    return memory


def correct(memory: Memory, **changes: Any) -> Memory:
    return change(scope_of(memory.instance), memory.id, read(MemoryChanges, changes))


def make_waiting(instance: Instance, content: str = "", conflict: Memory | None = None, **fields: Any) -> Memory:
    """A memory that waits for review, as extraction leaves it."""
    memory = make_memory(instance, content, **fields)
    rows = Memory.objects.filter(pk=memory.pk)
    rows.update(review=Review.PENDING, conflicts_with_id=conflict.id if conflict else None)
    memory.refresh_from_db()
    return memory


def make_pair(first: Memory, second: Memory, kind: str = "duplicate", cosine: float = 0.95) -> DuplicatePair:
    """Two memories as the job that looks for duplicates finds them; the older one first."""
    return DuplicatePair.objects.create(
        instance=first.instance,
        first_id=first.id,
        second_id=second.id,
        kind=kind,
        cosine=cosine,
        found_at=timezone.now(),
    )


def make_failed_job(instance: Instance, error: str = "It did not work.", **fields: Any) -> Job:
    job = ask_for_embedding(scope_of(instance))
    now = timezone.now()
    values = {"state": Job.State.FAILED, "error": error, "attempts": 1, "started_at": now, "finished_at": now, **fields}
    Job.objects.filter(pk=job.pk).update(**values)
    job.refresh_from_db()
    return job


def make_memories(instance: Instance, number: int, **fields: Any) -> list[Memory]:
    drafts = [read(MemoryDraft, {"content": f"Memory number {next(_numbers)}", **fields}) for _ in range(number)]
    return [saved.memory for saved in save_many(scope_of(instance), drafts)]


def make_procedure(instance: Instance, name: str = "", **fields: Any) -> Procedure:
    draft = {"name": name or f"Procedure {next(_numbers)}", "steps": ["Look it up", "Answer"], **fields}
    return create_procedure(scope_of(instance), read(ProcedureDraft, draft))


def make_conversation(instance: Instance, *messages: str, **fields: Any) -> Conversation:
    """Messages alternate between the user and the assistant."""
    scope = scope_of(instance)
    conversation = open_conversation(scope, read(ConversationDraft, fields)).conversation
    roles = ("user", "assistant")
    drafts = [read(MessageDraft, {"role": roles[n % 2], "content": text}) for n, text in enumerate(messages)]
    if drafts:
        add_messages(scope, conversation.id, drafts)
    conversation.refresh_from_db()
    return conversation
