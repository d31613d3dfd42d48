from typing import Any

from django.core.management.commands import migrate

from memoryconsole.turns import alone


class Command(migrate.Command):
    """Django's command, one process at a time: consoles that start together on one database would collide."""

    def handle(self, *args: Any, **options: Any) -> None:
        with alone("migrations"):
            super().handle(*args, **options)
