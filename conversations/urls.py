from django.urls import path

from conversations import views

urlpatterns = [
    path("conversations", views.conversation_list),
    path("conversations/<uuid:id>", views.conversation_detail),
]
