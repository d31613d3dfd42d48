"""Users, the instances they may open, and the API keys of programs."""

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db import models

from memoryconsole.ids import uuid7


class UserManager(BaseUserManager["User"]):
    def create_user(self, username: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(username=self.model.normalize_username(username), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, username: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(username, password, is_superadmin=True, **fields)


class User(AbstractBaseUser):
    """A superadmin may do everything; any other user works with the instances they are a member of."""

    USERNAME_FIELD = "username"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    username = models.CharField(
        max_length=150,
        unique=True,
        validators=[UnicodeUsernameValidator()],
        error_messages={"unique": "A user with this name exists already."},
    )
    is_superadmin = models.BooleanField("superadmin", default=False)
    is_active = models.BooleanField("may sign in", default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_instance = models.ForeignKey("instances.Instance", models.SET_NULL, null=True, related_name="+")

    objects: ClassVar[UserManager] = UserManager()

    def __str__(self) -> str:
        return self.username


class Membership(models.Model):
    """A user's access to one instance, and how far beyond it they may read."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships", db_index=False)
    instance = models.ForeignKey("instances.Instance", models.CASCADE, related_name="memberships")
    read_team = models.BooleanField(default=False)
    read_org = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "instance"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.instance_id}"


class ApiKey(models.Model):
    """`mc_<prefix>_<secret>`: the prefix finds the row, the hash of the whole key proves it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, unique=True)
    hash = models.CharField(max_length=64)
    instances = models.ManyToManyField("instances.Instance", related_name="+")
    all_instances = models.BooleanField(default=False)
    read_only = models.BooleanField(default=False)
    read_team = models.BooleanField(default=False)
    read_org = models.BooleanField(default=False)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class AccountEvent(models.Model):
    """An entry of the audit log of users, keys and whole instances: names and counts, never a memory's text."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    action = models.CharField(max_length=40)
    actor = models.CharField(max_length=200)
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.subject}"
