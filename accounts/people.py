"""Creating and changing users, their memberships and passwords."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from axes.utils import reset as lift_lock
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Prefetch

from accounts.access import Actor, actor_of_user, require_superadmin
from accounts.events import record_event
from accounts.models import Membership, User
from instances.models import Instance
from memoryconsole.errors import Invalid
from memoryconsole.finding import find_among

# Syllables of letters that nobody confuses: 75 ** 10 passwords, each easy to read out over the phone.
CONSONANTS = "bdfghjkmnprstvz"
VOWELS = "aeiou"
GROUPS = 5


@dataclass(frozen=True, slots=True)
class Grant:
    """A membership to give: an instance, and how far beyond it the user may read."""

    instance: Instance
    read_team: bool = False
    read_org: bool = False


@dataclass(frozen=True, slots=True)
class WithPassword:
    """A user, and the password that was generated for them, which cannot be read later; empty if one was chosen."""

    user: User
    generated: str


def people(actor: Actor) -> list[User]:
    require_superadmin(actor)
    memberships = Membership.objects.select_related("instance").order_by("instance__slug")
    return list(User.objects.prefetch_related(Prefetch("memberships", memberships)).order_by("username"))


def find_person(actor: Actor, raw_id: object) -> User:
    require_superadmin(actor)
    return find_among(User.objects.all(), raw_id, "There is no such user.")


def grants_of(user: User) -> list[Grant]:
    rows = user.memberships.select_related("instance").order_by("instance__slug")
    return [Grant(row.instance, row.read_team, row.read_org) for row in rows]


def create_person(
    actor: Actor, *, username: str, password: str = "", is_superadmin: bool = False, grants: Sequence[Grant] = ()
) -> WithPassword:
    require_superadmin(actor)
    user = User(username=User.normalize_username(username), is_superadmin=is_superadmin)
    _refuse({**_name_errors(user), **_password_errors(user, password)})
    generated = _set_or_generate(user, password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            _set_grants(user, grants)
            record_event(actor, "user created", user.username, superadmin=is_superadmin, instances=_slugs(grants))
    except IntegrityError:
        raise Invalid({"username": ["A user with this name exists already."]}) from None
    return WithPassword(user, generated)


@transaction.atomic
def change_person(
    actor: Actor, raw_id: object, *, is_superadmin: bool, is_active: bool, grants: Sequence[Grant]
) -> User:
    user = find_person(actor, raw_id)
    _check_superadmin_left(actor, user, stays=is_superadmin and is_active)
    user.is_superadmin, user.is_active = is_superadmin, is_active
    user.save(update_fields=["is_superadmin", "is_active"])
    _set_grants(user, grants)
    record_event(
        actor,
        "user changed",
        user.username,
        superadmin=is_superadmin,
        active=is_active,
        instances=_slugs(grants),
        read_team=[grant.instance.slug for grant in grants if grant.read_team],
        read_org=[grant.instance.slug for grant in grants if grant.read_org],
    )
    return user


@transaction.atomic
def reset_password(actor: Actor, raw_id: object, *, password: str = "") -> WithPassword:
    """Set a new password, or generate one. It ends all sessions of the user and lifts a lockout."""
    user = find_person(actor, raw_id)
    _refuse(_password_errors(user, password))
    generated = _set_or_generate(user, password)
    user.save(update_fields=["password"])
    finish_reset(actor, user.username)
    return WithPassword(user, generated)


@transaction.atomic
def finish_reset(actor: Actor, username: str) -> None:
    """After somebody else has set a user's password: lift the lockout, and log it."""
    lift_lock(username=username)
    record_event(actor, "password reset", username)


@transaction.atomic
def change_own_password(user: User, *, password: str) -> None:
    _refuse(_password_errors(user, password))
    user.set_password(password)
    user.save(update_fields=["password"])
    record_event(actor_of_user(user), "password changed", user.username)


def _check_superadmin_left(actor: Actor, user: User, *, stays: bool) -> None:
    # All are locked, so that two superadmins cannot remove each other at the same moment.
    active = User.objects.select_for_update().filter(is_superadmin=True, is_active=True).order_by("id")
    others = [each for each in active if each.pk != user.pk]
    if stays:
        return
    if user.pk == actor.id:
        raise Invalid({"isSuperadmin": ["You cannot lock yourself out. Ask another superadmin to do this."]})
    if not others:
        raise Invalid({"isSuperadmin": ["This is the last superadmin who can sign in."]})


def _refuse(errors: dict[str, list[str]]) -> None:
    if errors:
        raise Invalid(errors)


def _name_errors(user: User) -> dict[str, list[str]]:
    try:
        User._meta.get_field("username").clean(user.username, user)
        user.validate_unique()
    except ValidationError as error:
        return {"username": error.messages}
    return {}


def _password_errors(user: User, password: str) -> dict[str, list[str]]:
    """None for an empty password: it means that one is to be generated."""
    try:
        if password:
            validate_password(password, user)
    except ValidationError as error:
        return {"password": error.messages}
    return {}


def _set_grants(user: User, grants: Sequence[Grant]) -> None:
    Membership.objects.filter(user=user).exclude(instance__in=[grant.instance for grant in grants]).delete()
    for grant in grants:
        reach = {"read_team": grant.read_team, "read_org": grant.read_org}
        Membership.objects.update_or_create(user=user, instance=grant.instance, defaults=reach)


def _set_or_generate(user: User, password: str) -> str:
    """Set the password; if it is empty, set a generated one and return that."""
    generated = "" if password else readable_password()
    user.set_password(password or generated)
    return generated


def readable_password() -> str:
    return "-".join(_syllable() + _syllable() for _ in range(GROUPS))


def _syllable() -> str:
    return secrets.choice(CONSONANTS) + secrets.choice(VOWELS)


def _slugs(grants: Sequence[Grant]) -> list[str]:
    return [grant.instance.slug for grant in grants]
