"""/metrics"""

import pytest

from instances.models import Instance
from tests.api.calling import Answer, Caller, new_client, signed_in
from tests.factories import make_key, make_memory, make_user

pytestmark = pytest.mark.django_db
ELSEWHERE = {"REMOTE_ADDR": "203.0.113.7"}


def status(key: str = "", **environ: str) -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return new_client().get("/metrics", headers=headers, **environ).status_code


def test_counts_by_route_and_status(api: Caller, support: Instance) -> None:
    memory = make_memory(support)
    api.get(f"/api/v1/memories/{memory.id}?instanceId=support-bot")
    api.get("/api/v1/memories/nonsense?instanceId=support-bot")
    text = new_client().get("/metrics").content.decode()
    assert 'memoryconsole_requests_total{method="GET",route="api-memory",status="200"}' in text
    assert 'memoryconsole_requests_total{method="GET",route="api-memory",status="404"}' in text
    assert 'memoryconsole_request_seconds_bucket{le="0.1",method="GET",route="api-memory"}' in text
    assert "support-bot" not in text
    assert str(memory.id) not in text
    assert "nonsense" not in text


def test_made_up_methods_and_paths_share_a_label(support: Instance) -> None:
    new_client().generic("BREW", "/made/up")
    text = new_client().get("/metrics").content.decode()
    assert 'method="other",route="none"' in text
    assert "BREW" not in text


def test_from_this_machine_nobody_needs_a_key() -> None:
    assert status() == 200
    assert status(REMOTE_ADDR="::1") == 200


@pytest.mark.parametrize(
    "environ",
    [
        ELSEWHERE,
        {"REMOTE_ADDR": ""},
        {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        {"HTTP_FORWARDED": "for=127.0.0.1"},
        {"HTTP_X_REAL_IP": "127.0.0.1"},
    ],
)
def test_from_elsewhere_a_key_for_all_instances_is_needed(environ: dict[str, str], support: Instance) -> None:
    assert status(**environ) == 401
    assert status(make_key(), **environ) == 200
    assert status(make_key(read_only=True), **environ) == 200
    assert status(make_key(support), **environ) == 403
    assert status("mc_0_0", **environ) == 401


def test_superadmins_may_look() -> None:
    admin, user = make_user("ada", superadmin=True), make_user("bob")
    assert signed_in(admin).client.get("/metrics", **ELSEWHERE).status_code == 200
    assert Answer(signed_in(user).client.get("/metrics", **ELSEWHERE)).error == (403, "permission_denied")
