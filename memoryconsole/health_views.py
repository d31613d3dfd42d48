"""/healthz and /readyz, for load balancers and monitoring."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from memoryconsole import health


@csrf_exempt
@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Whether this process answers; nothing else is checked."""
    return JsonResponse({"status": "ok"})


@csrf_exempt
@login_not_required
@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Anybody may read this, so the advice of the checks is left out: it can name hosts and paths."""
    findings = health.readiness()
    ready = all(finding.level == "ok" for finding in findings)
    return JsonResponse(
        {
            "status": "ready" if ready else "not ready",
            "checks": {
                finding.check: {"ok": finding.level == "ok", "message": finding.message} for finding in findings
            },
        },
        status=200 if ready else 503,
    )
