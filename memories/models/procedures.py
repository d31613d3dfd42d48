"""Procedures and their vectors."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Value
from pgvector.django import HalfVectorField

from memories.models.chunks import DIMENSIONS
from memories.models.words import Language, Words
from memoryconsole.tenancy import InstanceOwned, OfInstance


class Procedure(InstanceOwned):
    """Named, ordered steps the assistant has learnt, and when to follow them. It is found by its name and trigger."""

    name = models.CharField(max_length=200)
    trigger = models.TextField(blank=True, default="")
    steps = ArrayField(models.TextField())
    usage_count = models.PositiveIntegerField(default=0)
    last_used_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    language = Language()
    words = models.GeneratedField(
        expression=Words(F("language"), F("name"), F("trigger"), Value("")),
        output_field=SearchVectorField(),
        db_persist=True,
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["instance", "name"], name="procedure_name_once")]
        indexes = [
            models.Index("instance", "usage_count", "id", name="procedure_most_used"),
            GinIndex(F("instance"), F("words"), name="procedure_words"),
        ]

    def __str__(self) -> str:
        return self.name


class ProcedureVector(OfInstance):
    """The vector of a procedure's name and trigger; `generation` is the same as in `Embedding`."""

    pk = models.CompositePrimaryKey("instance_id", "procedure_id", "generation")
    procedure_id = models.UUIDField()
    generation = models.SmallIntegerField()
    vector = HalfVectorField(dimensions=DIMENSIONS)

    def __str__(self) -> str:
        return f"{self.procedure_id} #{self.generation}"
