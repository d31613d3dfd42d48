"""Sliders for the settings of recall, to try them before they are saved."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import FloatField
from django.http import QueryDict

from instances.models import Instance, bounds_of
from memories.recall.request import RecallSettings
from memoryconsole.errors import Invalid
from memoryconsole.inputs import snake_name

# By public name: label, help, and the end of the slider if the full range would make it too coarse.
KNOBS: Mapping[str, tuple[str, str, float | None]] = {
    "threshold": ("Similarity from", "What is less similar is left out; of offline vectors half of it counts.", None),
    "limit": ("Memories found", "At most this many.", 20),
    "tokenBudget": ("Token budget", "The whole block, estimated.", 4_000),
    "halfLifeDays": ("Half-life in days", "When age counts half.", 365),
    "mmrLambda": ("Relevance against variety", "1 is relevance alone.", None),
}


@dataclass(frozen=True, slots=True)
class Knob:
    name: str
    label: str
    help: str
    value: str
    saved: str
    low: float
    high: float
    slider_high: float
    step: str
    error: str = ""

    @property
    def is_changed(self) -> bool:
        return self.value != self.saved


def knobs_for(instance: Instance, query: QueryDict, problem: Invalid | None = None) -> list[Knob]:
    return [_knob(instance, name, query.get(name, "").strip(), problem) for name in KNOBS]


def _knob(instance: Instance, name: str, typed: str, problem: Invalid | None) -> Knob:
    label, help, slider_high = KNOBS[name]
    column: Any = Instance._meta.get_field(f"recall_{snake_name(name)}")
    low, high = bounds_of(column.name)
    saved = f"{getattr(instance, column.name):g}"
    return Knob(
        name=name,
        label=label,
        help=help,
        value=typed or saved,
        saved=saved,
        low=low,
        high=high,
        slider_high=slider_high or high,
        step="0.01" if isinstance(column, FloatField) else "1",
        error=problem.errors.get(name, [""])[0] if problem else "",
    )


def in_words(problem: Invalid | None) -> str:
    """The problem in a sentence, with the labels of the page."""
    errors = problem.errors if problem else {}
    return " ".join(f"{KNOBS[name][0] if name in KNOBS else name}: {reasons[0]}" for name, reasons in errors.items())


def settings_in(query: QueryDict) -> dict[str, str]:
    """The settings in a form or URL; those that are left out are the instance's."""
    return {name: value for name in KNOBS if (value := query.get(name, "").strip())}


class Change(NamedTuple):
    name: str
    label: str
    value: float
    saved: float


def changes_for(instance: Instance, settings: RecallSettings) -> list[Change]:
    return [
        Change(name, KNOBS[name][0], value, getattr(instance, f"recall_{snake_name(name)}"))
        for name, value in changed_values(instance, settings).items()
    ]


def changed_values(instance: Instance, settings: RecallSettings) -> dict[str, Any]:
    """The settings that differ from the instance's, by public name."""
    requested = {name: getattr(settings, snake_name(name)) for name in KNOBS}
    return {
        name: value
        for name, value in requested.items()
        if value is not None and value != getattr(instance, f"recall_{snake_name(name)}")
    }
