from typing import Any

from django.core.management.base import CommandParser

from accounts.access import SHELL
from instances.presenting import instance_json
from instances.store import InstanceDraft, create_instance
from instances.warnings import warnings_for
from memoryconsole.commands import ConsoleCommand, add_json_option
from memoryconsole.inputs import read
from memoryconsole.terminal import printable

FIELDS = ("slug", "name", "team", "organisation")


class Command(ConsoleCommand):
    help = "Makes an instance: one assistant with a memory of its own. A slug that exists already is an error."
    written_as = {"slug": "SLUG"}

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the instanceId: lower-case letters, digits and hyphens")
        parser.add_argument("--name", metavar="NAME", help="what people call it; the slug unless given")
        parser.add_argument("--team", metavar="TEAM", help="made if missing; “default” unless given")
        parser.add_argument("--organisation", metavar="NAME", help="made if missing; “default” unless given")
        add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        draft = read(InstanceDraft, {name: options[name] for name in FIELDS if options[name] is not None})
        instance = create_instance(SHELL, draft)
        if options["json"]:
            self.print_json({"instance": instance_json(instance)})
            return
        place = printable(f"team {instance.team} of {instance.team.organisation}")
        self.stdout.write(f"Created {instance.slug} in {place}.")
        self.complain(*(warning.message for warning in warnings_for(instance)))
