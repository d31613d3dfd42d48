from django.urls import path

from conversations import try_views, views

urlpatterns = [
    path("conversations", views.conversation_list),
    path("conversations/try", try_views.conversation_try),
    path("conversations/<uuid:id>", views.conversation_detail),
]
