"""Every route under /api/v1, as documented: without a slash at the end."""

from django.urls import path, re_path

from conversations import api as conversations
from instances import api as instances
from memories.api import (
    attachments,
    audit,
    duplicates,
    forgetting,
    jobs,
    memories,
    procedures,
    recall,
    reviews,
    tags,
    transfer,
)
from memoryconsole.api import not_found

urlpatterns = [
    path("memories", memories.Memories.as_view(), name="api-memories"),
    path("memories/bulk", memories.MemoriesInBulk.as_view(), name="api-memories-bulk"),
    path("memories/bulk-delete", memories.MemoriesDeletion.as_view(), name="api-memories-bulk-delete"),
    path("memories/<str:id>", memories.OneMemory.as_view(), name="api-memory"),
    path("memories/<str:id>/history", memories.History.as_view(), name="api-memory-history"),
    path("memories/<str:id>/restore", memories.Restore.as_view(), name="api-memory-restore"),
    path("memories/<str:id>/similar", memories.Similar.as_view(), name="api-memory-similar"),
    path("memories/<str:id>/review", reviews.OneReview.as_view(), name="api-memory-review"),
    path("memories/<str:id>/attachments", attachments.Attachments.as_view(), name="api-attachments"),
    path(
        "memories/<str:id>/attachments/<str:attachmentId>",
        attachments.OneAttachment.as_view(),
        name="api-attachment",
    ),
    path("recall", recall.Recalling.as_view(), name="api-recall"),
    path("recalls", recall.Recalls.as_view(), name="api-recalls"),
    path("recalls/<str:id>", recall.OneRecall.as_view(), name="api-recall-logged"),
    path("recalls/<str:id>/why", recall.WhyRecalled.as_view(), name="api-recall-why"),
    path("procedures", procedures.Procedures.as_view(), name="api-procedures"),
    path("procedures/<str:id>", procedures.OneProcedure.as_view(), name="api-procedure"),
    path("procedures/<str:id>/used", procedures.Used.as_view(), name="api-procedure-used"),
    path("reviews", reviews.Reviews.as_view(), name="api-reviews"),
    path("duplicates", duplicates.Duplicates.as_view(), name="api-duplicates"),
    path("duplicates/<str:id>", duplicates.OnePair.as_view(), name="api-duplicate"),
    path("conversations", conversations.Conversations.as_view(), name="api-conversations"),
    path("conversations/<str:id>", conversations.OneConversation.as_view(), name="api-conversation"),
    path("conversations/<str:id>/messages", conversations.Messages.as_view(), name="api-conversation-messages"),
    path("conversations/<str:id>/context", conversations.Context.as_view(), name="api-conversation-context"),
    path("conversations/<str:id>/close", conversations.Closing.as_view(), name="api-conversation-close"),
    path("audit", audit.Audit.as_view(), name="api-audit"),
    path("export", transfer.Export.as_view(), name="api-export"),
    path("import", transfer.Import.as_view(), name="api-import"),
    path("tags", tags.Tags.as_view(), name="api-tags"),
    path("forget", forgetting.Forget.as_view(), name="api-forget"),
    path("jobs", jobs.Jobs.as_view(), name="api-jobs"),
    path("jobs/<str:id>/retry", jobs.Retry.as_view(), name="api-job-retry"),
    path("jobs/<str:id>", jobs.OneJob.as_view(), name="api-job"),
    path("instances", instances.Instances.as_view(), name="api-instances"),
    path("instances/<str:slug>", instances.OneInstance.as_view(), name="api-instance"),
    re_path("", not_found, name="api-not-found"),
]
