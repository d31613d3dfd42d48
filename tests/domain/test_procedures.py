"""Procedures: written, changed, used and deleted."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from accounts.access import Actor, Scope
from instances.models import Instance
from memories.models import AuditEntry, Procedure, ProcedureVector
from memories.procedures import store as procedures
from memories.procedures.store import (
    ProcedureChanges,
    change_procedure,
    count_use,
    delete_procedure,
    find_procedure,
    most_used,
)
from memories.procedures.vectors import embed_procedures
from memoryconsole.errors import Conflict, Invalid, NotAllowed, NotFound, Taken
from tests.factories import make_instance, make_procedure, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot() -> Instance:
    return make_instance("support-bot", embedder="offline")


def test_steps_keep_their_order(bot: Instance) -> None:
    procedure = make_procedure(bot, "Refund", trigger="wants money back", steps=["Look", "Ask", "Pay"])
    again = find_procedure(scope_of(bot), procedure.id)
    assert (again.name, again.trigger, again.steps) == ("Refund", "wants money back", ["Look", "Ask", "Pay"])
    assert (again.usage_count, again.last_used_at) == (0, None)


def test_a_name_is_there_once_per_instance(bot: Instance) -> None:
    make_procedure(bot, "Refund")
    make_procedure(make_instance(), "Refund")
    with pytest.raises(Taken) as taken:
        make_procedure(bot, "Refund")
    assert list(taken.value.errors) == ["name"]
    other = make_procedure(bot, "Return")
    with pytest.raises(Taken):
        change_procedure(scope_of(bot), other.id, ProcedureChanges(name="Refund"))
    assert sorted(most_used(scope_of(bot)).values_list("name", flat=True)) == ["Refund", "Return"]


def test_only_what_differs_is_written_and_logged(bot: Instance) -> None:
    procedure = make_procedure(bot, "Refund", steps=["Look"])
    change_procedure(scope_of(bot), procedure.id, ProcedureChanges(name="Refund"))
    assert find_procedure(scope_of(bot), procedure.id).updated_at == procedure.updated_at
    change_procedure(scope_of(bot), procedure.id, ProcedureChanges(name="Refund", steps=["Look", "Pay"]))
    entries = AuditEntry.objects.filter(instance=bot).order_by("id").values_list("action", "detail")
    assert [(action, detail.get("fields")) for action, detail in entries] == [
        ("procedure created", None),
        ("procedure changed", ["steps"]),
    ]
    assert all(detail["procedureId"] == str(procedure.id) for _, detail in entries)
    assert "Refund" not in str(list(entries))


def test_two_writers_do_not_overwrite_each_other(bot: Instance) -> None:
    procedure = make_procedure(bot)
    change_procedure(scope_of(bot), procedure.id, ProcedureChanges(trigger="theirs"), seen=procedure.updated_at)
    with pytest.raises(Conflict):
        change_procedure(scope_of(bot), procedure.id, ProcedureChanges(trigger="mine"), seen=procedure.updated_at)
    assert find_procedure(scope_of(bot), procedure.id).trigger == "theirs"


def test_the_most_used_come_first(bot: Instance) -> None:
    names = ["Never", "Often", "Once"]
    never, often, once = (make_procedure(bot, name) for name in names)
    for procedure in (often, often, once):
        count_use(scope_of(bot), procedure.id)
    assert [(each.name, each.usage_count) for each in most_used(scope_of(bot))] == [
        ("Often", 2), ("Once", 1), ("Never", 0),
    ]  # fmt: skip
    assert find_procedure(scope_of(bot), often.id).last_used_at
    assert find_procedure(scope_of(bot), often.id).updated_at == often.updated_at
    assert find_procedure(scope_of(bot), never.id).last_used_at is None


@pytest.mark.django_db(transaction=True)
def test_no_use_is_lost(bot: Instance) -> None:
    procedure = make_procedure(bot)

    def use(_: int) -> None:
        try:
            count_use(scope_of(bot), procedure.id)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(40)))
    assert find_procedure(scope_of(bot), procedure.id).usage_count == 40


def test_deleting_leaves_nothing(bot: Instance) -> None:
    procedure = make_procedure(bot, "Unspeakable steps")
    embed_procedures(scope_of(bot))
    delete_procedure(scope_of(bot), procedure.id)
    assert not Procedure.objects.exists()
    assert not ProcedureVector.objects.exists()
    with pytest.raises(NotFound):
        delete_procedure(scope_of(bot), procedure.id)


def test_credentials_are_not_stored(bot: Instance) -> None:
    procedure = make_procedure(bot, steps=["Sign in with password: hunter22", "Go on"])
    assert "hunter22" not in str(procedure.steps)
    assert procedure.steps[1] == "Go on"


def test_there_is_an_end(bot: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procedures, "MAX_PROCEDURES", 2)
    make_procedure(bot)
    make_procedure(bot)
    with pytest.raises(Invalid, match="at most 2"):
        make_procedure(bot)


def test_others_cannot_reach_it(bot: Instance) -> None:
    procedure = make_procedure(bot)
    foreign = scope_of(make_instance())
    for id in (procedure.id, "nonsense", None):
        for act in (find_procedure, count_use, delete_procedure):
            with pytest.raises(NotFound):
                act(foreign, id)
    reader = Scope(bot, Actor(kind="key", name="reader", read_only=True))
    changes = ProcedureChanges(trigger="x")
    writes: list[Any] = [count_use, delete_procedure, lambda scope, id: change_procedure(scope, id, changes)]
    for write in writes:
        with pytest.raises(NotAllowed):
            write(reader, procedure.id)
    assert find_procedure(reader, procedure.id) == procedure
