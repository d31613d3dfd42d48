from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.access import actor_of_key, instances_of
from accounts.keys import key_presented
from accounts.models import ApiKey
from memoryconsole.errors import NotFound
from tests.commands.conftest import Shell
from tests.factories import make_instance, scope_of


def test_the_key_is_alone_on_stdout_and_works(shell: Shell):
    make_instance("support-bot")
    make_instance("sales-bot")
    ran = shell("createapikey", "--instance", "support-bot", "--name", "Crawler")
    key = key_presented(ran.out.rstrip("\n"))
    assert ran.code == 0
    assert key is not None
    assert key.name == "Crawler"
    assert [instance.slug for instance in instances_of(actor_of_key(key))] == ["support-bot"]
    assert "only time" in ran.err
    assert ran.out.strip() not in ran.err


def test_it_opens_only_the_instances_it_was_made_for(shell: Shell):
    make_instance("support-bot")
    sales = make_instance("sales-bot")
    key = key_presented(shell("createapikey", "--instance", "support-bot").out.strip())
    assert key is not None
    with pytest.raises(NotFound):
        scope_of(sales, actor_of_key(key))


@pytest.mark.parametrize("words", [["--instance", "a", "b"], ["--instance", "a", "--instance", "b", "--instance", "a"]])
def test_several_instances(shell: Shell, words: list[str]):
    make_instance("a")
    make_instance("b")
    shell("createapikey", *words)
    assert sorted(ApiKey.objects.get().instances.values_list("slug", flat=True)) == ["a", "b"]


def test_all_instances_and_every_grant(shell: Shell):
    grants = ["--read-only", "--grant", "read_team", "--grant", "read_org"]
    ran = shell("createapikey", "--all-instances", *grants, "--expires", "30")
    key = ApiKey.objects.get()
    assert ran.code == 0
    assert (key.all_instances, key.read_only, key.read_team, key.read_org) == (True, True, True, True)
    assert key.expires_at is not None
    assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)


def test_json(shell: Shell):
    make_instance("support-bot")
    answer = shell("createapikey", "--instance", "support-bot", "--json", "--expires", "1").json["key"]
    assert key_presented(answer["secret"]) is not None
    assert answer["instances"] == ["support-bot"]
    assert answer["expiresAt"].endswith("Z")


def test_an_unknown_instance_is_not_found_and_makes_no_key(shell: Shell):
    make_instance("support-bot")
    ran = shell("createapikey", "--instance", "support-bot", "nobody")
    assert (ran.code, ran.out, ran.err) == (3, "", "There is no instance “nobody”.\n")
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--name", "Crawler"],
        ["--instance", "support-bot", "--all-instances"],
        ["--all-instances", "--grant", "write_org"],
        ["--all-instances", "--expires", "0"],
        ["--all-instances", "--expires", "soon"],
        ["--all-instances", "--expires", "-1"],
        ["--all-instances", "--expires", "1.5"],
        ["--all-instances", "--expires", "99999999999"],
        ["--all-instances", "--name", " "],
        ["--all-instances", "--name", "n" * 101],
        ["--instance", ""],
    ],
)
def test_wrong_usage_makes_no_key(shell: Shell, words: list[str]):
    make_instance("support-bot")
    ran = shell("createapikey", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err
    assert not ApiKey.objects.exists()
