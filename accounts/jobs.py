"""Work the worker does on accounts, on a schedule."""

from datetime import timedelta

from axes.models import AccessAttempt, AccessLog
from django.contrib.sessions.models import Session
from django.utils import timezone
from procrastinate.contrib.django import app

# Far longer than anybody is locked out.
KEEP_SIGN_INS = timedelta(days=1)


@app.periodic(cron="29 * * * *")
@app.task(name="forget_sign_ins", queueing_lock="forget_sign_ins")
def forget_sign_ins(timestamp: int) -> None:
    """Sessions that have ended, and who tried to sign in from where: nobody else removes them."""
    now = timezone.now()
    Session.objects.filter(expire_date__lte=now).delete()
    for signs in (AccessAttempt, AccessLog):
        signs.objects.filter(attempt_time__lt=now - KEEP_SIGN_INS).delete()
