from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from accounts.access import SHELL
from accounts.keys import Grants, create_key
from accounts.models import ApiKey
from instances.models import Instance
from memoryconsole.commands import ConsoleCommand, add_json_option, open_from_shell
from memoryconsole.presenting import when

LONGEST_DAYS = 3650


class Command(ConsoleCommand):
    help = "Makes an API key and prints it, alone, on stdout. It cannot be shown again."
    written_as = {"instances": "--instance"}

    def add_arguments(self, parser: CommandParser) -> None:
        reach = parser.add_mutually_exclusive_group(required=True)
        reach.add_argument(
            "--instance",
            metavar="SLUG",
            nargs="+",
            action="extend",
            help="an instance the key opens; several may follow",
        )
        reach.add_argument("--all-instances", action="store_true", help="every instance, also those made later")
        parser.add_argument("--name", metavar="NAME", default="command line", help="to know it by in the list of keys")
        parser.add_argument("--read-only", action="store_true", help="a key that can change nothing")
        parser.add_argument(
            "--grant",
            choices=["read_team", "read_org"],
            action="append",
            default=[],
            help="also read what other instances share with the team, or with the organisation",
        )
        parser.add_argument("--expires", metavar="DAYS", type=days, help="stop working after so many days")
        add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        instances = [open_from_shell(slug).instance for slug in dict.fromkeys(options["instance"] or [])]
        lifetime: timedelta | None = options["expires"]
        key, whole = create_key(
            SHELL,
            name=options["name"],
            instances=instances,
            grants=Grants(
                all_instances=options["all_instances"],
                read_only=options["read_only"],
                **dict.fromkeys(options["grant"], True),
            ),
            expires_at=timezone.now() + lifetime if lifetime else None,
        )
        if options["json"]:
            self.print_json({"key": {"secret": whole, **_description(key, instances)}})
            return
        self.stdout.write(whole)
        self.complain(f"This is the only time the key “{key.name}” is shown. Keep it like a password.")


def days(raw: str) -> timedelta:
    if not raw.isdecimal() or not 1 <= int(raw) <= LONGEST_DAYS:
        raise ArgumentTypeError(f"choose a whole number of days from 1 to {LONGEST_DAYS}")
    return timedelta(days=int(raw))


def _description(key: ApiKey, instances: list[Instance]) -> dict[str, Any]:
    return {
        "id": str(key.id),
        "name": key.name,
        "prefix": key.prefix,
        "allInstances": key.all_instances,
        "instances": [instance.slug for instance in instances],
        "readOnly": key.read_only,
        "readTeam": key.read_team,
        "readOrg": key.read_org,
        "expiresAt": when(key.expires_at) if key.expires_at else None,
    }
