import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword

from accounts.access import SHELL
from accounts.people import finish_reset


class Command(changepassword.Command):
    """Django's command, which here also ends a lockout after too many wrong passwords."""

    def handle(self, *args: Any, **options: Any) -> str | None:
        username = options["username"] or getpass.getuser()
        done = super().handle(*args, **options)
        finish_reset(SHELL, username)
        return done
