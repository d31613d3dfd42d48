"""What mem0 exports: `{"results": [{"id", "memory", "user_id", "metadata", "categories", "created_at", …}]}`."""

from typing import Any

from memories.vocabulary import Category

SOURCE = "mem0"
# Other owners of a mem0 memory; stored as evidence.
OTHER_OWNERS = {"agent_id": "agentId", "run_id": "runId", "app_id": "appId", "actor_id": "actorId"}


def is_mem0(item: dict[str, Any]) -> bool:
    return isinstance(item.get("memory"), str) and "content" not in item


def from_mem0(item: dict[str, Any]) -> dict[str, Any]:
    metadata = dict(item["metadata"]) if isinstance(item.get("metadata"), dict) else {}
    found: dict[str, Any] = {"content": item["memory"], "source": SOURCE}
    if metadata.get("category") in Category.values:
        found["category"] = metadata.pop("category")
    categories = item.get("categories")
    if isinstance(categories, list):
        found["tags"] = [each if isinstance(each, list | dict) else str(each) for each in categories]
    others = {name: item[key] for key, name in OTHER_OWNERS.items() if item.get(key)}
    named = {
        "owner": item.get("user_id"),
        "createdAt": item.get("created_at"),
        "updatedAt": item.get("updated_at"),
        "expiresAt": item.get("expiration_date"),
        "evidence": {**metadata, **others},
    }
    return {**found, **{name: value for name, value in named.items() if value}}
