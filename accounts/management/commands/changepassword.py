import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword

from accounts.access import SHELL
from accounts.people import let_in_again


class Command(changepassword.Command):
    """Django's own, which leaves people locked out who have tried too many wrong passwords before."""

    def handle(self, *args: Any, **options: Any) -> str | None:
        username = options["username"] or getpass.getuser()
        done = super().handle(*args, **options)
        let_in_again(SHELL, username)
        return done
