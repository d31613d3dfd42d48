"""What happens once in the life of a console: the first superadmin, and something to look at."""

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
    """The superadmin's password when this call made one up; it is kept nowhere, so show it."""
    wait_for_turn("first start")
    if User.objects.exists():
        return None
    generated = None if settings.ADMIN_PASSWORD else readable_password()
    user = User.objects.create_superuser(settings.ADMIN_USERNAME, generated or settings.ADMIN_PASSWORD)
    record_event(SHELL, "user created", user.username, superadmin=True)
    if demo and settings.EMBEDDED_POSTGRES:
        load_demo(SHELL)
    return generated
