from django.urls import path

from accounts.views import keys, signing_in, users

urlpatterns = [
    path("login", signing_in.sign_in),
    path("logout", signing_in.sign_out),
    path("password", signing_in.password),
    path("users", users.user_list),
    path("users/new", users.user_new),
    path("users/<uuid:id>", users.user_edit),
    path("users/<uuid:id>/password", users.user_password),
    path("keys", keys.key_list),
    path("keys/new", keys.key_new),
    path("keys/<uuid:id>/revoke", keys.key_revoke),
]
