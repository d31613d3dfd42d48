"""Conversations, each of one instance with one end user over one channel, and their messages in order."""

from django.db import models

from memoryconsole.tenancy import InstanceOwned


class MessageRole(models.TextChoices):
    USER = "user", "User"
    ASSISTANT = "assistant", "Assistant"
    SYSTEM = "system", "System"
    TOOL = "tool", "Tool"


class Conversation(InstanceOwned):
    external_id = models.CharField(max_length=200, blank=True, default="")
    channel = models.CharField(max_length=64, blank=True, default="")
    owner = models.CharField(max_length=200, blank=True, default="")
    title = models.CharField(max_length=200, blank=True, default="")
    time_zone = models.CharField(max_length=64, blank=True, default="")
    message_count = models.PositiveIntegerField(default=0)
    summary = models.TextField(blank=True, default="")
    summarised_through = models.PositiveIntegerField(default=0)
    extracted_through = models.PositiveIntegerField(default=0)
    # The position of the last message that is covered by an episode.
    told_through = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    last_message_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["instance", "external_id"],
                condition=~models.Q(external_id=""),
                name="conversation_external_id_once",
            )
        ]
        indexes = [
            models.Index("instance", "last_message_at", "id", name="conversation_recent"),
            models.Index(
                "instance",
                "last_message_at",
                condition=models.Q(told_through__lt=models.F("message_count")),
                name="conversation_untold",
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.external_id or f"Conversation {str(self.id)[-12:]}"


class Message(InstanceOwned):
    conversation_id = models.UUIDField()
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=16, choices=MessageRole.choices)
    content = models.TextField()
    external_id = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["instance", "conversation_id", "position"], name="message_position_once"),
            models.UniqueConstraint(
                fields=["instance", "conversation_id", "external_id"],
                condition=~models.Q(external_id=""),
                name="message_external_id_once",
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=MessageRole.values),
                name="message_role_known",
                violation_error_message="Choose user, assistant, system or tool.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.position}"
