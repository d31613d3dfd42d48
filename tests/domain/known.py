"""The model of the state machine: memories, permissions and the rules of visibility in plain Python."""

from dataclasses import dataclass
from uuid import UUID

# Team and organisation by slug: two of one team, one of another team, one of another organisation.
PLACES = {
    "sales": ("front", "acme"),
    "support": ("front", "acme"),
    "billing": ("back", "acme"),
    "stranger": ("front", "rival"),
}


@dataclass(eq=False)
class Known:
    """A memory of the model. `said` has all its texts, with the current one last."""

    id: UUID
    place: str
    owner: str
    key: str
    visibility: str
    said: list[tuple[str, str]]
    active: bool = True
    waiting: bool = False
    expired: bool = False
    deleted: bool = False

    @property
    def is_there(self) -> bool:
        return not self.deleted and not self.expired

    @property
    def is_listed(self) -> bool:
        return self.is_there and self.active and not self.waiting

    def say(self, text: str, category: str) -> None:
        if self.said[-1] != (text, category):
            self.said.append((text, category))

    def words(self) -> set[str]:
        return {*self.said[-1][0].lower().split(), self.key, self.owner}


class Permissions:
    """Who may open which instance, and whether they may read what its team and its organisation share."""

    def __init__(self) -> None:
        self.granted = {
            ("ada", "sales"): (True, False),
            ("ada", "support"): (False, True),
            ("bob", "sales"): (False, False),
            ("key", "sales"): (False, False),
        }

    def reach(self, name: str, place: str) -> tuple[bool, bool] | None:
        return (True, True) if name == "root" else self.granted.get((name, place))

    def opens(self, name: str, place: str) -> bool:
        return self.reach(name, place) is not None

    def reads(self, name: str, memory: Known) -> bool:
        is_own = memory.visibility != "private" or name in ("root", "key", memory.owner)
        return memory.is_there and self.opens(name, memory.place) and is_own

    def lists(self, name: str, place: str, memory: Known) -> bool:
        return memory.place == place and memory.is_listed and self.reads(name, memory)

    def is_given(self, name: str, place: str, memory: Known) -> bool:
        """Whether another instance shares the memory with this reader of `place`."""
        team, org = self.reach(name, place) or (False, False)
        if memory.place == place or not memory.is_listed:
            return False
        if team and PLACES[memory.place] == PLACES[place]:
            return memory.visibility in ("team", "org")
        return org and memory.visibility == "org" and PLACES[memory.place][1] == PLACES[place][1]
