"""Instances as JSON, the same for the API and for commands."""

from typing_extensions import TypedDict

from instances.models import Instance
from instances.warnings import warnings_for
from memoryconsole.presenting import When, when


class WarningJson(TypedDict):
    code: str
    message: str
    link: str


class InstanceJson(TypedDict):
    slug: str
    name: str
    team: str
    organisation: str
    memoryEnabled: bool
    language: str
    embedder: str
    openaiKeyLast4: str | None
    extractionMessages: int
    extractionLimit: int
    dedupeThreshold: float
    autoApproveImportance: int
    quietMinutes: int
    recallLimit: int
    recallThreshold: float
    recallTokenBudget: int
    recallHalfLifeDays: int
    recallMmrLambda: float
    recallInjectedCap: int
    recallLogDays: int
    warnings: list[WarningJson]
    createdAt: When
    updatedAt: When


def instance_json(instance: Instance) -> InstanceJson:
    return {
        "slug": instance.slug,
        "name": instance.name,
        "team": instance.team.name,
        "organisation": instance.team.organisation.name,
        "memoryEnabled": instance.memory_enabled,
        "language": instance.language,
        "embedder": instance.embedder,
        "openaiKeyLast4": instance.openai_key_last4 or None,
        "extractionMessages": instance.extraction_messages,
        "extractionLimit": instance.extraction_limit,
        "dedupeThreshold": instance.dedupe_threshold,
        "autoApproveImportance": instance.auto_approve_importance,
        "quietMinutes": instance.quiet_minutes,
        "recallLimit": instance.recall_limit,
        "recallThreshold": instance.recall_threshold,
        "recallTokenBudget": instance.recall_token_budget,
        "recallHalfLifeDays": instance.recall_half_life_days,
        "recallMmrLambda": instance.recall_mmr_lambda,
        "recallInjectedCap": instance.recall_injected_cap,
        "recallLogDays": instance.recall_log_days,
        "warnings": [
            {"code": warning.code, "message": warning.message, "link": warning.link}
            for warning in warnings_for(instance)
        ],
        "createdAt": when(instance.created_at),
        "updatedAt": when(instance.updated_at),
    }
