"""The context processor for the frame of every page: the instance picker and the navigation."""

from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest

from accounts.access import actor_of_user, instances_of
from accounts.models import User


@dataclass(frozen=True, slots=True)
class Link:
    name: str
    title: str
    icon: str
    path: str
    group: str = ""
    has_instance: bool = True
    for_superadmins: bool = False
    href: str = ""


NAVIGATION = [
    Link("overview", "Overview", "overview", "/overview"),
    Link("memory", "Memory", "memory", "/memory"),
    Link("recall", "Recall", "recall", "/recall"),
    Link("conversations", "Conversations", "chat", "/conversations"),
    Link("procedures", "Procedures", "steps", "/procedures"),
    Link("activity", "Activity", "activity", "/activity"),
    Link("audit", "Audit log", "log", "/audit"),
    Link("instances", "Instances", "bot", "/instances", group="Manage", has_instance=False),
    Link("keys", "API keys", "key", "/keys", has_instance=False),
    Link("users", "Users", "users", "/users", has_instance=False, for_superadmins=True),
]


def console(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    if not isinstance(user, User):
        return {}
    scope = getattr(request, "scope", None)
    instances = list(instances_of(actor_of_user(user)).order_by("slug").only("slug", "name"))
    instance = scope.instance if scope else None
    name = request.path.split("/")[1]
    suffix = f"?instance={instance.slug}" if instance else ""
    links = [
        replace(link, href=link.path + (suffix if link.has_instance else ""))
        for link in NAVIGATION
        if user.is_superadmin or not link.for_superadmins
    ]
    section = next((link for link in NAVIGATION if link.name == name and link.has_instance), None)
    theme = request.COOKIES.get("theme", "")
    return {
        "instances": instances,
        "instance": instance,
        "picked_id": instance.id if instance else user.last_instance_id,
        "picker_path": _picker_path(request) if instance else "/memory",
        "navigation": links,
        "section": section or Link(name, "", "", "/memory"),
        "theme": theme if theme in {"light", "dark"} else "",
    }


def _picker_path(request: HttpRequest) -> str:
    """The same page, for another instance. A page about one row leads to its list, because no other instance has it."""
    name, match = request.path.split("/")[1], request.resolver_match
    if name == "instances":
        return "/instances/settings"
    is_in_every_instance = request.method == "GET" and match is not None and not match.kwargs
    return request.path if is_in_every_instance else f"/{name}"
