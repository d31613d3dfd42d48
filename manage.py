#!/usr/bin/env python
"""Every management command starts here."""

import os
import sys
from io import TextIOWrapper

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    # Whatever the locale: what we say and export has signs that other encodings do not know.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryconsole.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # A variable in the environment, by its name: where the settings read it is nothing to whoever set it.
        sys.exit(str(error))
    except KeyboardInterrupt:
        # Ctrl-C while a command is still loading, or in one that does not look out for it.
        sys.exit(130)
