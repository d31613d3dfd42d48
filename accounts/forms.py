"""The forms of sign-in, users and API keys. The rules are in `accounts.people` and `accounts.keys`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, UsernameField
from django.http import QueryDict
from django.utils import timezone

from accounts.keys import Grants
from accounts.models import User
from accounts.people import Grant
from instances.models import Instance
from memoryconsole.forms import set_choices, verbatim

EXPIRIES = [("", "Never"), ("30", "In 30 days"), ("90", "In 90 days"), ("365", "In 1 year")]


class SignInForm(AuthenticationForm):
    # Django's own field accepts longer names, which do not fit into the columns of django-axes.
    username = UsernameField(max_length=150)
    error_messages = {
        "invalid_login": "The name or the password is wrong.",
        "inactive": "This account is switched off.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The password is what has to be typed again.
        has_name = bool(self.data.get("username"))
        self.fields["username"].widget.attrs["autofocus"] = not has_name
        self.fields["password"].widget.attrs["autofocus"] = has_name


class OwnPasswordForm(forms.Form):
    current = forms.CharField(
        label="Current password", strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )
    password = forms.CharField(
        label="New password",
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 10 characters, not only digits, nothing common and nothing like your name.",
    )
    again = forms.CharField(
        label="New password again", strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_current(self) -> str:
        current: str = self.cleaned_data["current"]
        if not self.user.check_password(current):
            raise forms.ValidationError("This is not your current password.")
        return current

    def clean_again(self) -> str:
        again: str = self.cleaned_data["again"]
        if "password" in self.cleaned_data and again != self.cleaned_data["password"]:
            raise forms.ValidationError("The two new passwords differ.")
        return again


class NewPasswordForm(forms.Form):
    password = forms.CharField(
        label="New password",
        required=False,
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Leave empty to have one made, which is shown once.",
    )


@dataclass(frozen=True, slots=True)
class MembershipRow:
    instance: Instance
    is_member: bool
    read_team: bool
    read_org: bool


class MembershipsForm(forms.Form):
    """The memberships of a user: a table of checkboxes, one row for each instance."""

    members = forms.MultipleChoiceField(label="Instances", required=False)
    read_team = forms.MultipleChoiceField(required=False)
    read_org = forms.MultipleChoiceField(required=False)

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        instances: Sequence[Instance],
        grants: Sequence[Grant] = (),
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        held = {
            "members": [grant.instance.slug for grant in grants],
            "read_team": [grant.instance.slug for grant in grants if grant.read_team],
            "read_org": [grant.instance.slug for grant in grants if grant.read_org],
        }
        super().__init__(data, initial={**held, **(initial or {})})
        self.instances = instances
        for name in held:
            set_choices(self, name, [(instance.slug, instance.name) for instance in instances])

    @property
    def rows(self) -> list[MembershipRow]:
        members, team, org = (self[name].value() or [] for name in ("members", "read_team", "read_org"))
        return [
            MembershipRow(each, each.slug in members, each.slug in team, each.slug in org) for each in self.instances
        ]

    def clean(self) -> None:
        """Refuse a right that was ticked without a membership, because it would have no effect.

        A right that was ticked before is no error: it is removed together with the membership.
        """
        without_effect: set[str] = set()
        members = self.cleaned_data.get("members", [])
        for name in ("read_team", "read_org"):
            without_effect |= {*self.cleaned_data.get(name, [])} - {*members, *self.initial[name]}
        if without_effect:
            reason = "Only a member of {} reads further there: tick “Member” too, or untick the rest of the row."
            self.add_error("members", reason.format(" and ".join(sorted(without_effect))))

    def grants(self) -> list[Grant]:
        """One for each membership; rights that are ticked without one are ignored."""
        chosen = self.cleaned_data
        return [
            Grant(each, each.slug in chosen["read_team"], each.slug in chosen["read_org"])
            for each in self.instances
            if each.slug in chosen["members"]
        ]


class NewUserForm(MembershipsForm):
    username = forms.CharField(
        max_length=150,
        widget=verbatim(),
        help_text="Letters, digits and @ . + - _ only. It cannot be changed later.",
    )
    password = NewPasswordForm.base_fields["password"]
    is_superadmin = forms.BooleanField(
        label="Superadmin", required=False, help_text="Opens every instance, and manages users, keys and instances."
    )


class UserForm(MembershipsForm):
    is_superadmin = NewUserForm.base_fields["is_superadmin"]
    is_active = forms.BooleanField(
        label="May sign in",
        required=False,
        help_text="Switch off to keep somebody out at once. API keys they made keep working until they are revoked.",
    )


class KeyForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="Which program uses it, for example “support engine, production”.",
    )
    all_instances = forms.BooleanField(
        label="All instances",
        required=False,
        help_text="Also those made later. With such a key a program can make instances.",
    )
    instances = forms.MultipleChoiceField(
        label="Or only these instances", required=False, widget=forms.CheckboxSelectMultiple
    )
    read_only = forms.BooleanField(
        label="Read only", required=False, help_text="It may search, list and recall, but change nothing."
    )
    read_team = forms.BooleanField(
        label="Also read memories shared with the team",
        required=False,
        help_text="Of other instances in the same team.",
    )
    read_org = forms.BooleanField(
        label="Also read memories shared with the organisation",
        required=False,
        help_text="Of other instances in the same organisation.",
    )
    expires = forms.ChoiceField(choices=EXPIRIES, required=False)

    def __init__(self, *args: Any, instances: Sequence[Instance], is_superadmin: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.available = instances
        named = [
            (each.slug, each.name if each.name == each.slug else f"{each.name} ({each.slug})") for each in instances
        ]
        set_choices(self, "instances", named)
        if not is_superadmin:
            self.fields["instances"].label = "Instances"
            for name in ("all_instances", "read_team", "read_org"):
                del self.fields[name]

    def chosen(self) -> list[Instance]:
        return [each for each in self.available if each.slug in self.cleaned_data["instances"]]

    def grants(self) -> Grants:
        names = ("all_instances", "read_only", "read_team", "read_org")
        return Grants(**{name: self.cleaned_data.get(name, False) for name in names})

    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["expires"]
        return timezone.now() + timedelta(days=int(days)) if days else None
