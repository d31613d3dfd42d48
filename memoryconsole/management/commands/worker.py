from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memoryconsole import processes, worker


class Command(BaseCommand):
    help = "Runs queued jobs until it is told to stop. `up` starts one by itself."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--parent", type=int, help="stop when this process is gone")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["parent"]:
            processes.end_with_parent(options["parent"])
        worker.run()
