from django.urls import path
from django.views.generic import RedirectView

from memories.views import attaching, auditing, bulk, editing, forgetting, jobs, listing, procedures, transfer

urlpatterns = [
    path("", RedirectView.as_view(url="/memory", query_string=True)),
    path("memory", listing.memory_list),
    path("memory/new", editing.memory_new),
    path("memory/role-hint", editing.memory_role_hint),
    path("memory/bulk", bulk.memory_bulk),
    path("memory/bulk-delete", bulk.memory_bulk_delete),
    path("memory/embed", jobs.memory_embed),
    path("memory/jobs/<id>", jobs.memory_job),
    path("memory/export", transfer.memory_export),
    path("memory/import", transfer.memory_import),
    path("memory/import/<uuid:id>", transfer.memory_import_job),
    path("memory/import/<uuid:id>/confirm", transfer.memory_import_confirm),
    path("memory/import/<uuid:id>/discard", transfer.memory_import_discard),
    path("memory/<uuid:id>", editing.memory_detail),
    path("memory/<uuid:id>/edit", editing.memory_edit),
    path("memory/<uuid:id>/pin", editing.memory_pin),
    path("memory/<uuid:id>/role", editing.memory_role),
    path("memory/<uuid:id>/tags", editing.memory_tags),
    path("memory/<uuid:id>/delete", editing.memory_delete),
    path("memory/<uuid:id>/attachments", attaching.attachment_new),
    path("memory/<uuid:id>/attachments/<uuid:attachment_id>", attaching.attachment_download),
    path("memory/<uuid:id>/attachments/<uuid:attachment_id>/delete", attaching.attachment_delete),
    path("procedures", procedures.procedure_list),
    path("procedures/new", procedures.procedure_new),
    path("procedures/<uuid:id>", procedures.procedure_edit),
    path("procedures/<uuid:id>/delete", procedures.procedure_delete),
    path("forget", forgetting.forget_person),
    path("audit", auditing.audit_list),
    path("audit/export", auditing.audit_export),
]
