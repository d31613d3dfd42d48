"""The processor time of process trees, which depends less than elapsed time on how busy the machine is."""

import os
from collections import defaultdict
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def used_ms(*roots: int) -> float:
    """Milliseconds that these processes and all their descendants have used; 0 if there is no /proc."""
    used, children = _processes()
    unvisited, seen = list(roots), set[int]()
    while unvisited:
        pid = unvisited.pop()
        seen.add(pid)
        unvisited += children[pid]
    return sum(used.get(pid, 0) for pid in seen) * 1000 / TICKS


def _processes() -> tuple[dict[int, int], dict[int, list[int]]]:
    used: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(stat.parent.name)
        used[pid] = int(fields[11]) + int(fields[12])
        children[int(fields[1])].append(pid)
    return used, children
