from django.urls import path

from instances import views

urlpatterns = [
    path("instances", views.instance_list),
    path("instances/new", views.instance_new),
    path("instances/remove-demo", views.demo_remove),
    path("instances/settings", views.settings_of_picked),
    path("instances/<str:slug>/settings", views.instance_settings),
    path("instances/<str:slug>/settings/test-key", views.instance_test_key),
    path("instances/<str:slug>/delete", views.instance_delete),
]
