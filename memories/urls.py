from django.urls import path
from django.views.generic import RedirectView

from memories.views import activity, bulk, duplicates, editing, history, jobs, listing, review

urlpatterns = [
    path("", RedirectView.as_view(url="/memory", query_string=True)),
    path("memory", listing.memory_list),
    path("memory/new", editing.memory_new),
    path("memory/bulk", bulk.memory_bulk),
    path("memory/bulk-delete", bulk.memory_bulk_delete),
    path("memory/embed", jobs.memory_embed),
    path("memory/jobs/<id>", jobs.memory_job),
    path("memory/review", review.review_list),
    path("memory/review/bulk", review.review_bulk),
    path("memory/duplicates", duplicates.duplicate_list),
    path("memory/duplicates/find", duplicates.duplicate_search),
    path("memory/duplicates/bulk", duplicates.duplicate_bulk),
    path("memory/duplicates/<uuid:id>", duplicates.duplicate_pair),
    path("memory/<uuid:id>", editing.memory_detail),
    path("memory/<uuid:id>/edit", editing.memory_edit),
    path("memory/<uuid:id>/pin", editing.memory_pin),
    path("memory/<uuid:id>/delete", editing.memory_delete),
    path("memory/<uuid:id>/history", history.memory_history),
    path("memory/<uuid:id>/restore", history.memory_restore),
    path("memory/<uuid:id>/review", review.review_one),
    path("activity", activity.activity_page),
    path("activity/<uuid:id>/retry", activity.activity_retry),
]
