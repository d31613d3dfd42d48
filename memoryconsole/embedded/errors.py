from django.core.management.base import CommandError


class EmbeddedPostgresError(CommandError):
    """The embedded server cannot be used; the message says what is wrong and what to do about it.

    As a `CommandError` it reaches whoever typed a command as that message, without a traceback.
    """
