"""Tables that belong to one instance: `instance_id` leads their primary key, foreign keys and indexes.

A row can then never point at another instance's row, whatever the code above does, and the tables can be
distributed by instance.
"""

from django.db import models
from django.db.migrations import RunSQL

from memoryconsole.ids import uuid7


class OfInstance(models.Model):
    instance = models.ForeignKey(
        "instances.Instance", models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )

    class Meta:
        abstract = True


class InstanceOwned(OfInstance):
    pk = models.CompositePrimaryKey("instance_id", "id")
    id = models.UUIDField(default=uuid7, editable=False)

    class Meta:
        abstract = True


def key_made_last(table: str, *columns: str) -> RunSQL:
    """Drop the primary key and create it again, after the other indexes and before any foreign key refers to it.

    Every index starts with the instance, so before the first ANALYZE all indexes of a table look equally good, and
    PostgreSQL takes the newest. If that is not the primary key, each check of a foreign key reads the whole instance.
    """
    names = ", ".join(columns or ("id",))
    again = f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY (instance_id, {names})"
    return RunSQL(again, RunSQL.noop)


def owned_by_instance(*tables: str) -> list[RunSQL]:
    """Deleting an instance deletes its rows."""
    return [
        _foreign_key(table, "instance", "(instance_id)", "instances_instance (id)", "ON DELETE CASCADE")
        for table in tables
    ]


def part_of(table: str, column: str, parent: str) -> RunSQL:
    """A row of `table` is deleted with the row of the same instance that it is part of."""
    return _foreign_key(table, column, f"(instance_id, {column})", f"{parent} (instance_id, id)", "ON DELETE CASCADE")


def points_to(table: str, column: str, target: str) -> RunSQL:
    """A row of `table` stays when the row of the same instance it points to is deleted; the column becomes null."""
    return _foreign_key(
        table, column, f"(instance_id, {column})", f"{target} (instance_id, id)", f"ON DELETE SET NULL ({column})"
    )


def _foreign_key(table: str, name: str, columns: str, references: str, on_delete: str) -> RunSQL:
    constraint = f"{table}_{name}_fk"
    return RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {constraint} FOREIGN KEY {columns} REFERENCES {references} {on_delete}",
        f"ALTER TABLE {table} DROP CONSTRAINT {constraint}",
    )
