"""GET /api/v1/jobs and POST /api/v1/jobs/{id}/retry"""

from typing import Any

import pytest

from instances.models import Instance
from memories.embedding.backfill import ask_for_embedding
from memories.models import Job
from tests.api.calling import Answer, Caller
from tests.factories import make_failed_job, make_key, scope_of


def look(api: Caller, query: str = "") -> Answer:
    return api.get(f"/api/v1/jobs?instanceId=support-bot{query}")


def retry(api: Caller, job: Job, **body: Any) -> Answer:
    return api.post(f"/api/v1/jobs/{job.id}/retry", {"instanceId": "support-bot", **body})


@pytest.fixture
def failed(support: Instance) -> Job:
    return make_failed_job(support)


def test_newest_first(api: Caller, support: Instance, failed: Job) -> None:
    queued = ask_for_embedding(scope_of(support))
    answer = look(api).json
    assert (answer["total"], answer["limit"], answer["offset"], answer["nextCursor"]) == (2, 20, 0, None)
    assert [job["id"] for job in answer["jobs"]] == [str(queued.id), str(failed.id)]
    shown = answer["jobs"][1]
    assert (shown["state"], shown["error"], shown["attempts"]) == ("failed", "It did not work.", 1)


def test_filters_and_parts(api: Caller, support: Instance, failed: Job) -> None:
    for _ in range(3):
        ask_for_embedding(scope_of(support))
    assert look(api, "&state=failed").json["total"] == 1
    assert look(api, "&kind=embed-memories").json["total"] == 4
    assert look(api, "&kind=extract-memories").json["jobs"] == []
    first = look(api, "&limit=3").json
    assert [job["id"] for job in look(api, f"&cursor={first['nextCursor']}").json["jobs"]] == [str(failed.id)]
    for query in ("state=tired", "limit=0", "cursor=x", "search=x"):
        assert list(look(api, f"&{query}").errors) == [query.split("=")[0]]


@pytest.mark.parametrize("name", ["state", "kind"])
def test_an_empty_filter_does_not_mean_any(name: str, api: Caller) -> None:
    assert look(api, f"&{name}=").errors == {name: ["This may not be empty. Leave the filter out to mean any."]}


def test_retry(api: Caller, failed: Job) -> None:
    answer = retry(api, failed)
    assert (answer.status, answer.json["job"]["state"]) == (202, "queued")
    assert answer.json["job"]["id"] != str(failed.id)
    queued = Job.objects.get(id=answer.json["job"]["id"])
    assert retry(api, queued).error == (409, "not_failed")
    assert retry(api, failed, force=True).errors == {"force": ["Unknown field."]}


def test_who_may_only_read(support: Instance, failed: Job) -> None:
    reader = Caller(make_key(support, read_only=True))
    assert look(reader).status == 200
    assert retry(reader, failed).error == (403, "read_only")
    assert Job.objects.count() == 1


def test_strangers(sales: Instance, failed: Job) -> None:
    stranger = Caller(make_key(sales))
    assert look(stranger).error == (404, "not_found")
    assert retry(stranger, failed).error == (404, "not_found")
    assert retry(stranger, failed, instanceId="sales-bot").error == (404, "not_found")
    assert stranger.get("/api/v1/jobs?instanceId=sales-bot").json["jobs"] == []
