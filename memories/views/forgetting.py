"""/forget: count everything of a person, and delete it after a confirmation."""

from collections.abc import Mapping
from dataclasses import asdict

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, posted
from memories.forgetting import forget, forgotten_at, preview, require_reach
from memories.forms.forgetting import OwnerForm
from memoryconsole.counting import counted
from memoryconsole.errors import Conflict
from memoryconsole.forms import ConfirmForm
from memoryconsole.inputs import whole_number

TITLES = {
    "memories": ("memory", "memories"),
    "versions": ("earlier version", "earlier versions"),
    "chunks": ("search entry", "search entries"),
    "embeddings": ("vector", "vectors"),
    "attachments": ("attachment", "attachments"),
    "conversations": ("conversation", "conversations"),
    "messages": ("message", "messages"),
    "recalls": ("entry of the recall log", "entries of the recall log"),
    "golden": ("golden query", "golden queries"),
    "jobs": ("job", "jobs"),
}


@require_http_methods(["GET", "POST"])
@about_instance
def forget_person(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    require_reach(scope)
    data = request.POST if request.method == "POST" else request.GET
    who = OwnerForm(data if "owner" in data else None)
    if not who.is_valid():
        return render(request, "memories/forget.html", {"who": who})
    owner = who.cleaned_data["owner"]
    form = ConfirmForm(posted(request), name=owner, is_its="id", otherwise="Nothing was forgotten.")
    if request.method == "POST" and form.is_valid():
        try:
            done = forget(scope, owner, expected=_expected(request.POST))
        except Conflict:
            form.add_error(None, "There is more or less of this person by now. Look at the numbers again.")
        else:
            context = {
                "owner": owner,
                "done": done,
                "gone": in_words(asdict(done.counts)),
                "mentioned": in_words(done.mentioned),
            }
            return render(request, "memories/forgotten.html", context)
    counts = preview(scope, owner)
    context = {
        "who": who,
        "owner": owner,
        "form": form,
        "counts": counts,
        "expected": asdict(counts),
        "found": in_words(asdict(counts)),
        "forgotten_at": forgotten_at(scope, owner) if counts.is_nothing else None,
    }
    return render(request, "memories/forget.html", context)


def in_words(counts: Mapping[str, int]) -> list[str]:
    return [counted(n, *TITLES.get(name, (name, name))) for name, n in counts.items() if n]


def _expected(sent: QueryDict) -> dict[str, int]:
    """The numbers that the reader saw before confirming."""
    return {name: n for name in TITLES if (n := whole_number(sent.get(name, ""))) is not None}
