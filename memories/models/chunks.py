"""The tables that search reads: chunks of memories, their vectors, and word frequencies."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Cast
from django.db.models.lookups import LessThan
from pgvector.django import BitField, HalfVectorField

from memories.models.words import FirstWord, IsQuestion, IsTurn, Language, Words
from memoryconsole.tenancy import InstanceOwned, OfInstance

DIMENSIONS = 1536
LAST_BYTE = Func(Func("chunk_id", function="uuid_send"), 15, function="get_byte", output_field=models.IntegerField())


class Chunk(InstanceOwned):
    """A searchable part of a memory's text, or of one of its versions.

    Words are searched in `content`, in `who` (the speaker or owner) and in `about` (date, key, tags and summary).
    `text_hash` is the hash of the embedded text, so that the same text is not embedded twice.
    """

    memory_id = models.UUIDField()
    version_id = models.UUIDField(null=True)
    position = models.PositiveSmallIntegerField()
    live = models.BooleanField()
    language = Language()
    who = models.CharField(max_length=200, blank=True, default="")
    content = models.TextField()
    about = models.TextField(blank=True, default="")
    text_hash = models.BinaryField(max_length=32)
    length = models.PositiveSmallIntegerField()
    words = models.GeneratedField(
        expression=Words(F("language"), F("who"), F("content"), F("about")),
        output_field=SearchVectorField(),
        db_persist=True,
    )
    # Search weighs these three. Computing them for hundreds of candidates took a sixth of its time.
    first_word = models.GeneratedField(
        expression=FirstWord(F("content")), output_field=models.TextField(), db_persist=True
    )
    turn = models.GeneratedField(
        expression=IsTurn(F("who"), F("content")), output_field=models.BooleanField(), db_persist=True
    )
    question = models.GeneratedField(
        expression=IsQuestion(F("content")), output_field=models.BooleanField(), db_persist=True
    )

    class Meta:
        indexes = [
            models.Index("instance", "memory_id", "position", name="chunk_of_memory"),
            models.Index("instance", "version_id", condition=Q(version_id__isnull=False), name="chunk_of_version"),
            models.Index("instance", "text_hash", name="chunk_same_text"),
            GinIndex(F("instance"), F("words"), gin_pending_list_limit=256, name="chunk_words"),
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} #{self.position}"


class Embedding(OfInstance):
    """A chunk's vector, kept out of the rows that keyword search and lists read.

    Each model has a `generation`: an instance searches one generation while the next is being filled.
    """

    pk = models.CompositePrimaryKey("instance_id", "chunk_id", "generation")
    chunk_id = models.UUIDField()
    generation = models.SmallIntegerField()
    memory_id = models.UUIDField()
    live = models.BooleanField()
    vector = HalfVectorField(dimensions=DIMENSIONS)
    bits = models.GeneratedField(
        expression=Cast(Func(F("vector"), function="memories_sketch"), BitField(length=DIMENSIONS)),
        output_field=BitField(length=DIMENSIONS),
        db_persist=True,
    )

    class Meta:
        indexes = [
            # Covers a scan for neighbours under a filter, so that it need not read the rows with their vectors.
            models.Index(
                "instance",
                "generation",
                "chunk_id",
                include=["bits", "memory_id"],
                condition=Q(live=True),
                name="embedding_scan",
            ),
            # One row in 64, to check whether a vector index missed the nearest (`memories/search/vectors_sql.py`).
            models.Index(
                "instance",
                "generation",
                "chunk_id",
                include=["bits"],
                condition=Q(LessThan(LAST_BYTE, 4), live=True),
                name="embedding_sample",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.chunk_id} #{self.generation}"


class WordFrequency(OfInstance):
    """The number of chunks that contain a common word of a large instance, estimated by a job. Other words are rare."""

    pk = models.CompositePrimaryKey("instance_id", "word")
    word = models.TextField()
    chunks = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.word} {self.chunks}"
