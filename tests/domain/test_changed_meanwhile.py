"""Two writers at once: the second one waits and decides by what the first one has committed."""

import pytest

from instances.models import Instance
from memories.deletion import delete_matching
from memories.draft import MemoryChanges
from memories.filters import Filters
from memories.models import Memory
from memories.store import change
from memoryconsole.errors import Conflict
from tests.domain.looking import while_writing
from tests.factories import make_memory, scope_of

pytestmark = pytest.mark.django_db(transaction=True)


def rewrite(memory: Memory, content: str) -> Memory:
    return change(scope_of(memory.instance), memory.id, MemoryChanges(content=content), seen=memory.updated_at)


def test_two_corrections_of_the_same_text_are_not_both_made(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea")
    with pytest.raises(Conflict, match="while you were writing"):
        while_writing(lambda: rewrite(memory, "Alice likes coffee"), rewrite, memory, "Alice likes cocoa")
    memory.refresh_from_db()
    assert memory.content == "Alice likes coffee"


def test_what_no_longer_matches_is_not_deleted(bot: Instance) -> None:
    memory = make_memory(bot, "Alice likes tea", tags=["old"])
    scope, old = scope_of(bot), Filters(tag=["old"])
    with pytest.raises(Conflict, match="0 memories match now"):
        while_writing(
            lambda: change(scope, memory.id, MemoryChanges(tags=["kept"])),
            lambda: delete_matching(scope, old, expected=1),
        )
    assert Memory.objects.get().tags == ["kept"]
