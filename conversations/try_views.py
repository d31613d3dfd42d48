"""/conversations/try: what extraction would find in a conversation; nothing is stored."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.views.decorators.http import require_http_methods

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, render_part
from accounts.throttling import allow
from conversations.forms import TryForm
from conversations.listing import last_messages, recent_conversations
from conversations.models import Conversation
from conversations.store import find_conversation
from instances.warnings import warnings_for
from memories.asking import Unavailable
from memories.audit import note_private_reads
from memories.filters import readable
from memories.learning.deduplication import Outcome
from memories.learning.extraction import Learnt, try_extraction
from memories.learning.llm import Unreadable, can_ask
from memories.learning.messages import Source, messages_in, source_of
from memories.models import Memory
from memoryconsole.errors import NotFound

CHOICES = 50
TRIES_PER_MINUTE = 10
TOO_OFTEN = f"Each try asks the language model. {TRIES_PER_MINUTE} a minute are enough; try again in a moment."


@dataclass(frozen=True, slots=True)
class Proposal:
    """A row of the result. `known` is the similar memory that exists already, if the reader may see it."""

    outcome: Outcome
    known: Memory | None

    @property
    def is_hidden(self) -> bool:
        return self.outcome.known is not None and self.known is None


@require_http_methods(["GET", "POST"])
@about_instance
def conversation_try(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    chosen = request.GET.get("conversation", "")
    conversations = _choices(request, scope, chosen)
    form = TryForm(request.POST or None, conversations=conversations, initial={"conversation": chosen})
    learnt, error = None, ""
    if request.method == "POST" and form.is_valid():
        learnt, error = _try(request, scope, form)
    context = {
        "form": form,
        "has_model": can_ask(scope.instance),
        "warnings": warnings_for(scope.instance),
        "learnt": learnt,
        "proposals": _proposals(scope, learnt) if learnt else [],
        "error": error,
    }
    return render_part(request, "conversations/try.html", "outcome", context)


def _choices(request: ConsoleRequest, scope: Scope, chosen: str) -> list[Conversation]:
    """The latest ones, and the one the reader came from. If that is deleted meanwhile, sending the form says so."""
    latest = recent_conversations(scope, CHOICES)
    if not chosen or any(str(conversation.id) == chosen for conversation in latest):
        return latest
    try:
        return [find_conversation(scope, chosen), *latest]
    except NotFound:
        if request.method != "POST":
            raise
        return latest


def _try(request: ConsoleRequest, scope: Scope, form: TryForm) -> tuple[Learnt | None, str]:
    if not allow(("try", request.user.id), TRIES_PER_MINUTE):
        return None, TOO_OFTEN
    try:
        return _extract(scope, form), ""
    except NotFound as problem:
        return None, problem.detail
    except Unavailable as unavailable:
        return None, unavailable.reason
    except Unreadable as unreadable:
        return None, unreadable.message


def _extract(scope: Scope, form: TryForm) -> Learnt:
    text = form.cleaned_data["text"]
    if text.strip():
        return try_extraction(scope, Source(owner=form.cleaned_data["user"]), messages_in(text, scope.instance))
    conversation = find_conversation(scope, form.cleaned_data["conversation"])
    messages = last_messages(scope, conversation, scope.instance.extraction_messages)
    return try_extraction(scope, source_of(conversation), messages)


def _proposals(scope: Scope, learnt: Learnt) -> list[Proposal]:
    ids = [outcome.known.id for outcome in learnt.outcomes if outcome.known]
    seen = {memory.id: memory for memory in readable(scope).filter(id__in=ids)}
    note_private_reads(scope, seen.values())
    return [Proposal(outcome, seen.get(outcome.known.id) if outcome.known else None) for outcome in learnt.outcomes]
