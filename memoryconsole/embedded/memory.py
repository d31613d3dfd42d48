"""How much memory PostgreSQL may use: a share of what this machine has, or the container it runs in."""

import os
from collections.abc import Sequence
from pathlib import Path

# Where cgroups, version 2 and 1, say how much memory a container may use; "max" if there is no limit.
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
LEAST_MB, MOST_MB = 128, 8192


def settings(limits: Sequence[Path] = LIMITS) -> dict[str, str]:
    """Generous: memory is only taken when needed, and vectors that do not fit are read again for every search."""
    mb = total_mb(limits)
    return {
        "shared_buffers": f"{min(max(mb // 4, LEAST_MB), MOST_MB)}MB",
        "effective_cache_size": f"{max(mb // 2, LEAST_MB)}MB",
    }


def total_mb(limits: Sequence[Path]) -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    texts = [limit.read_text().strip() for limit in limits if limit.is_file()]
    return min([machine, *(int(text) for text in texts if text.isdecimal())]) // 2**20
