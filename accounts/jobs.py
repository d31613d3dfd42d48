"""Periodic jobs about sign-ins."""

from datetime import timedelta

from axes.models import AccessAttempt, AccessLog
from django.contrib.sessions.models import Session
from django.utils import timezone
from procrastinate.contrib.django import app

# Much longer than a lockout lasts.
KEEP_SIGN_INS = timedelta(days=1)


@app.periodic(cron="29 * * * *")
@app.task(name="forget_sign_ins", queueing_lock="forget_sign_ins")
def forget_sign_ins(timestamp: int) -> None:
    """Delete expired sessions and old attempts to sign in; neither Django nor django-axes does it."""
    now = timezone.now()
    Session.objects.filter(expire_date__lte=now).delete()
    for model in (AccessAttempt, AccessLog):
        model.objects.filter(attempt_time__lt=now - KEEP_SIGN_INS).delete()
