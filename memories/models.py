"""What is remembered. Each table belongs to one instance; `memoryconsole.tenancy` says what the database enforces."""

from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import ExpressionWrapper, F, Func, Q, Value
from django.db.models.functions import Cast
from pgvector.django import BitField, HalfVectorField

from memories.vocabulary import Category, EmbeddingState, Review, Role, Status, Visibility
from memoryconsole.tenancy import InstanceOwned

MAX_CONTENT = 32_000
MAX_SUMMARY = 2_000
MAX_TAGS = 32
MAX_TAG = 64
DIMENSIONS = 1536

SHARED = [Visibility.TEAM, Visibility.ORG]

# A bare boolean column, so that prepared statements with generic plans can still use the partial indexes.
LISTED = Q(listed=True)


def _one_of(field: str, choices: type[models.TextChoices]) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": choices.values}),
        name=f"memory_{field}_known",
        violation_error_message=f"Choose one of: {', '.join(choices.values)}.",
    )


class Memory(InstanceOwned):
    """One thing remembered. Its id never changes; earlier texts are the versions behind it."""

    key = models.CharField(max_length=200, blank=True, default="")
    content = models.TextField()
    summary = models.TextField(blank=True, default="")
    category = models.CharField(max_length=16, choices=Category.choices, default=Category.GENERAL)
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.CONTEXT)
    importance = models.SmallIntegerField(default=5)
    confidence = models.FloatField(default=1.0)
    tags = ArrayField(models.CharField(max_length=MAX_TAG), default=list, blank=True)
    pinned = models.BooleanField(default=False)
    visibility = models.CharField(max_length=16, choices=Visibility.choices, default=Visibility.INSTANCE)
    owner = models.CharField(max_length=200, blank=True, default="")

    source = models.CharField(max_length=32, default="manual")
    source_conversation_id = models.UUIDField(null=True)
    conversation_position = models.PositiveIntegerField(default=0)
    source_message_ids = ArrayField(models.UUIDField(), default=list, blank=True)
    occurred_at = models.DateTimeField(null=True)
    channel = models.CharField(max_length=64, blank=True, default="")
    expires_at = models.DateTimeField(null=True)
    evidence = models.JSONField(default=dict, blank=True)

    status = models.CharField(max_length=16, choices=Status.choices, default=Status.ACTIVE)
    superseded_by_id = models.UUIDField(null=True)
    supersede_reason = models.TextField(blank=True, default="")
    review = models.CharField(max_length=16, choices=Review.choices, default=Review.APPROVED)
    conflicts_with_id = models.UUIDField(null=True)
    listed = models.GeneratedField(
        expression=ExpressionWrapper(Q(status=Status.ACTIVE, review=Review.APPROVED), models.BooleanField()),
        output_field=models.BooleanField(),
        db_persist=True,
    )

    embedding = models.CharField(max_length=16, choices=EmbeddingState.choices, default=EmbeddingState.PENDING)
    embedding_error = models.TextField(blank=True, default="")
    content_hash = models.BinaryField(max_length=32)

    access_count = models.PositiveIntegerField(default=0)
    last_accessed_at = models.DateTimeField(null=True)
    last_seen_at = models.DateTimeField()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(importance__range=(1, 10)),
                name="memory_importance_1_to_10",
                violation_error_message="Importance is a whole number from 1 to 10.",
            ),
            models.CheckConstraint(
                condition=Q(confidence__range=(0, 1)),
                name="memory_confidence_0_to_1",
                violation_error_message="Confidence is a number from 0 to 1.",
            ),
            models.CheckConstraint(
                condition=~Q(content=""),
                name="memory_content_not_empty",
                violation_error_message="Content may not be empty.",
            ),
            _one_of("category", Category),
            _one_of("role", Role),
            _one_of("visibility", Visibility),
            _one_of("status", Status),
            _one_of("review", Review),
            _one_of("embedding", EmbeddingState),
            models.UniqueConstraint(
                fields=["instance", "owner", "key"],
                condition=Q(status=Status.ACTIVE) & ~Q(key=""),
                name="memory_active_key_once",
            ),
        ]
        # "Newest first" is the primary key; these serve the filters, each led by the instance.
        indexes = [
            models.Index("instance", "category", "id", condition=LISTED, name="memory_by_category"),
            models.Index("instance", "importance", "id", condition=LISTED, name="memory_by_importance"),
            models.Index("instance", "role", "id", condition=LISTED, name="memory_by_role"),
            models.Index("instance", "id", condition=Q(pinned=True), name="memory_pinned"),
            models.Index("instance", "owner", "id", condition=~Q(owner=""), name="memory_by_owner"),
            models.Index("instance", "id", condition=Q(visibility=Visibility.PRIVATE), name="memory_private"),
            models.Index("instance", "id", condition=Q(visibility__in=SHARED), name="memory_shared"),
            models.Index("instance", "id", condition=~Q(embedding=EmbeddingState.READY), name="memory_not_embedded"),
            models.Index("instance", "id", condition=~LISTED, name="memory_unlisted"),
            models.Index("instance", "id", condition=Q(review=Review.PENDING), name="memory_to_review"),
            models.Index("instance", "expires_at", condition=Q(expires_at__isnull=False), name="memory_expiring"),
            models.Index("instance", "occurred_at", condition=Q(occurred_at__isnull=False), name="memory_occurred"),
            models.Index(
                "instance",
                "source_conversation_id",
                "conversation_position",
                condition=Q(source_conversation_id__isnull=False),
                name="memory_of_conversation",
            ),
            models.Index("instance", "content_hash", name="memory_same_content"),
            # The database looks these up whenever a memory is deleted.
            models.Index(
                "instance",
                "superseded_by_id",
                condition=Q(superseded_by_id__isnull=False),
                name="memory_superseded_by",
            ),
            models.Index(
                "instance",
                "conflicts_with_id",
                condition=Q(conflicts_with_id__isnull=False),
                name="memory_conflicts_with",
            ),
            GinIndex(F("instance"), F("tags"), condition=~Q(tags=[]), name="memory_tagged"),
        ]

    def __str__(self) -> str:
        return self.content[:60]


class MemoryVersion(InstanceOwned):
    """What a memory said before a change, why it changed and who changed it."""

    memory_id = models.UUIDField()
    number = models.PositiveIntegerField()
    key = models.CharField(max_length=200, blank=True, default="")
    content = models.TextField()
    summary = models.TextField(blank=True, default="")
    category = models.CharField(max_length=16)
    role = models.CharField(max_length=16)
    importance = models.SmallIntegerField()
    tags = ArrayField(models.CharField(max_length=MAX_TAG), default=list, blank=True)
    reason = models.TextField(blank=True, default="")
    actor = models.CharField(max_length=200)
    similarity = models.FloatField(null=True)
    source_message_id = models.UUIDField(null=True)
    written_at = models.DateTimeField()
    replaced_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["instance", "memory_id", "number"], name="version_number_once")]

    def __str__(self) -> str:
        return f"{self.memory_id} v{self.number}"


if TYPE_CHECKING:  # at run time Django's fields are not generic
    TextualField = models.Field[str, str]
else:
    TextualField = models.Field


class Language(TextualField):
    """A text-search configuration, stored as PostgreSQL's own type so that a generated column may use it."""

    def db_type(self, connection: object) -> str:
        return "regconfig"


class Words(Func):
    """What a chunk is found by; the function is made by a migration, and cuts queries in the same way."""

    function = "memories_words"
    output_field = SearchVectorField()


class Chunk(InstanceOwned):
    """A searchable piece of a memory, or of one of its versions.

    Words are looked for in what it says, in who said it, and in what is known about it: when, key, tags and summary.
    `text_hash` is of what is embedded, so that the same text is not embedded twice.
    """

    memory_id = models.UUIDField()
    version_id = models.UUIDField(null=True)
    position = models.PositiveSmallIntegerField()
    category = models.CharField(max_length=16)
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

    class Meta:
        indexes = [
            models.Index("instance", "memory_id", "position", name="chunk_of_memory"),
            models.Index("instance", "version_id", condition=Q(version_id__isnull=False), name="chunk_of_version"),
            models.Index("instance", "text_hash", name="chunk_same_text"),
            GinIndex(F("instance"), F("words"), name="chunk_words"),
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} #{self.position}"


class Embedding(models.Model):
    """A chunk's vector, kept out of the rows that keyword search and lists read.

    `generation` says which model made it: an instance searches one generation while another is being filled.
    """

    pk = models.CompositePrimaryKey("instance_id", "chunk_id", "generation")
    instance = models.ForeignKey(
        "instances.Instance", models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    chunk_id = models.UUIDField()
    generation = models.SmallIntegerField()
    memory_id = models.UUIDField()
    live = models.BooleanField()
    vector = HalfVectorField(dimensions=DIMENSIONS)
    bits = models.GeneratedField(
        expression=Cast(Func(F("vector"), function="binary_quantize"), BitField(length=DIMENSIONS)),
        output_field=BitField(length=DIMENSIONS),
        db_persist=True,
    )

    class Meta:
        indexes = [
            # Everything a scan for neighbours under a filter asks of a row, without the vector it stands beside.
            models.Index(
                "instance",
                "generation",
                "chunk_id",
                include=["bits", "memory_id"],
                condition=Q(live=True),
                name="embedding_scan",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.chunk_id} #{self.generation}"


class WordFrequency(models.Model):
    """In how many chunks a common word of a large instance stands, estimated by a job; a word not listed is rare."""

    pk = models.CompositePrimaryKey("instance_id", "word")
    instance = models.ForeignKey(
        "instances.Instance", models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    word = models.TextField()
    chunks = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.word} {self.chunks}"


class Job(InstanceOwned):
    """Work somebody asked for, or a conversation made necessary, with how far it has come and what came of it."""

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    kind = models.CharField(max_length=40)
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    actor = models.CharField(max_length=200)
    conversation_id = models.UUIDField(null=True)
    payload = models.JSONField(default=dict)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    tokens = models.PositiveIntegerField(default=0)
    result = models.JSONField(default=dict)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index("instance", "state", "id", name="job_by_state"),
            models.Index(
                "instance",
                "conversation_id",
                "id",
                condition=Q(conversation_id__isnull=False),
                name="job_of_conversation",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class DuplicatePair(InstanceOwned):
    """Two memories that say nearly the same, the older one first; found by a job, decided about by a person."""

    class Kind(models.TextChoices):
        DUPLICATE = "duplicate", "Duplicate"
        CONFLICT = "conflict", "Possible conflict"

    class State(models.TextChoices):
        OPEN = "open", "Open"
        DISMISSED = "dismissed", "Both are kept"

    first_id = models.UUIDField()
    second_id = models.UUIDField()
    cosine = models.FloatField()
    kind = models.CharField(max_length=16, choices=Kind.choices)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    found_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["instance", "first_id", "second_id"], name="pair_once"),
            models.CheckConstraint(condition=Q(first_id__lt=F("second_id")), name="pair_older_first"),
        ]
        indexes = [
            models.Index("instance", "second_id", name="pair_of_second"),
            models.Index("instance", "cosine", "id", condition=Q(state="open"), name="pair_open"),
        ]

    def __str__(self) -> str:
        return f"{self.first_id} {self.second_id} {self.cosine:.3f}"


class MemoryCount(InstanceOwned):
    """Changes to the number of listed memories, appended by a trigger and folded by a job: the sum is the count.

    Appending means that writers never wait for each other, as they would for one counter row.
    """

    category = models.CharField(max_length=16)
    private = models.BooleanField()
    delta = models.BigIntegerField()

    class Meta:
        indexes = [models.Index("instance", "category", "private", include=["delta"], name="memory_count_sum")]

    def __str__(self) -> str:
        return f"{self.category} {self.delta:+}"


class Milestone(InstanceOwned):
    """Every thousandth row of a long list, counted from the oldest, so that a page far inside is found at once."""

    series = models.CharField(max_length=32)
    ordinal = models.PositiveIntegerField()
    importance = models.SmallIntegerField()
    memory_id = models.UUIDField()

    class Meta:
        indexes = [models.Index("instance", "series", "ordinal", name="milestone_place")]

    def __str__(self) -> str:
        return f"{self.series} {self.ordinal}"


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


class ProcedureVector(models.Model):
    """The vector of a procedure's name and trigger; generations are those of `Embedding`."""

    pk = models.CompositePrimaryKey("instance_id", "procedure_id", "generation")
    instance = models.ForeignKey(
        "instances.Instance", models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    procedure_id = models.UUIDField()
    generation = models.SmallIntegerField()
    vector = HalfVectorField(dimensions=DIMENSIONS)

    def __str__(self) -> str:
        return f"{self.procedure_id} #{self.generation}"


class Attachment(InstanceOwned):
    """A file kept with a memory."""

    memory_id = models.UUIDField()
    name = models.CharField(max_length=255)
    content_type = models.CharField(max_length=127)
    size = models.PositiveBigIntegerField()
    sha256 = models.BinaryField(max_length=32)
    path = models.CharField(max_length=255)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index("instance", "memory_id", name="attachment_of_memory")]

    def __str__(self) -> str:
        return self.name


class Recall(InstanceOwned):
    """What was asked of the memory, what it answered and why, for as long as the instance keeps its log."""

    conversation_id = models.UUIDField(null=True)
    owner = models.CharField(max_length=200, blank=True, default="")
    query = models.TextField()
    search_mode = models.CharField(max_length=16)
    tokens = models.PositiveIntegerField(default=0)
    memory_ids = ArrayField(models.UUIDField(), default=list)
    explanation = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(
                "instance", "conversation_id", condition=Q(conversation_id__isnull=False), name="recall_of_conversation"
            ),
            GinIndex(F("instance"), F("memory_ids"), name="recall_of_memory"),
        ]

    def __str__(self) -> str:
        return f"recall {self.id}"


class RecallUse(InstanceOwned):
    """That memories were put into a prompt, appended by recall and folded into their access counts by a job."""

    memory_ids = ArrayField(models.UUIDField())
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{len(self.memory_ids)} memories used"


class GoldenQuery(InstanceOwned):
    """A question whose answer is known: what recall should find for it, and what it should not."""

    query = models.TextField()
    owner = models.CharField(max_length=200, blank=True, default="")
    query_hash = models.BinaryField(max_length=32)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["instance", "query_hash"], name="golden_query_once")]

    def __str__(self) -> str:
        return self.query[:60]


class GoldenMark(InstanceOwned):
    """A memory that is expected for a golden query, or that should not come."""

    golden_id = models.UUIDField()
    memory_id = models.UUIDField()
    expected = models.BooleanField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["instance", "golden_id", "memory_id"], name="golden_mark_once")]
        indexes = [models.Index("instance", "memory_id", name="golden_mark_of_memory")]

    def __str__(self) -> str:
        return f"{'+' if self.expected else '-'}{self.memory_id}"


class AuditEntry(InstanceOwned):
    """Who did what to which memories, and when. Ids, names and counts only; never what a memory said."""

    action = models.CharField(max_length=40)
    actor = models.CharField(max_length=200)
    memory_ids = ArrayField(models.UUIDField(), default=list)
    detail = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index("instance", "actor", "id", name="audit_by_actor"),
            models.Index("instance", "action", "id", name="audit_by_action"),
            GinIndex(F("instance"), F("memory_ids"), name="audit_of_memory"),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action}"
