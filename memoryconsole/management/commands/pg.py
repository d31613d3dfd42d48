import argparse
import os
import subprocess
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from psycopg.pq import Conninfo

from memoryconsole import embedded

# By the name of the option in DATABASE_URL.
VARIABLES = {option.keyword.decode(): option.envvar.decode() for option in Conninfo.get_defaults() if option.envvar}


class Command(BaseCommand):
    help = "Runs a PostgreSQL program such as psql, pg_dump or pg_restore on the console's database."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("program")
        parser.add_argument("arguments", nargs=argparse.REMAINDER)

    def handle(self, *args: Any, program: str, arguments: list[str], **options: Any) -> None:
        known = connection.get_connection_params()
        environment = dict(os.environ)
        environment |= {name: str(known[key]) for key, name in VARIABLES.items() if known.get(key)}
        if settings.EMBEDDED_POSTGRES:
            environment["PATH"] = f"{embedded.server().bin_directory()}{os.pathsep}{environment.get('PATH', '')}"
        try:
            done = subprocess.run(["/usr/bin/env", program, *arguments], env=environment, check=False)
        except KeyboardInterrupt:
            raise CommandError("Interrupted.") from None
        if done.returncode:
            sys.exit(done.returncode)
