"""What the very first start does: create a superadmin and load the demo."""

from django.conf import settings
from django.db import transaction

from accounts.access import SHELL
from accounts.events import record_event
from accounts.models import User
from accounts.people import readable_password
from memories.demo import load_demo
from memoryconsole.turns import wait_for_turn


@transaction.atomic
def prepare(demo: bool) -> str | None:
    """The password of the superadmin if this call generated it. It is stored nowhere, so it must be shown."""
    wait_for_turn("first start")
    if User.objects.exists():
        return None
    generated = None if settings.ADMIN_PASSWORD else readable_password()
    user = User.objects.create_superuser(settings.ADMIN_USERNAME, generated or settings.ADMIN_PASSWORD)
    record_event(SHELL, "user created", user.username, superadmin=True)
    if demo and settings.EMBEDDED_POSTGRES:
        load_demo(SHELL)
    return generated
