import pytest

from accounts.models import AccountEvent
from instances.models import Instance, Organisation, Team
from tests.api.calling import Caller
from tests.commands.conftest import Shell
from tests.factories import make_key


def test_it_makes_the_instance_its_team_and_its_organisation(shell: Shell):
    words = ["--name", "Support bot", "--team", "Customer care", "--organisation", "Acme"]
    ran = shell("createinstance", "support-bot", *words)
    instance = Instance.objects.get()
    assert (ran.code, ran.out) == (0, "Created support-bot in team Customer care of Acme.\n")
    assert (instance.slug, instance.name, instance.is_demo) == ("support-bot", "Support bot", False)
    assert (instance.team.name, instance.team.organisation.name) == ("Customer care", "Acme")
    assert AccountEvent.objects.get().actor == "shell server"


def test_name_team_and_organisation_have_defaults(shell: Shell):
    answer = shell("createinstance", "support-bot", "--json").json["instance"]
    named = {"slug": "support-bot", "name": "support-bot", "team": "default", "organisation": "default"}
    assert {name: answer[name] for name in named} == named
    assert "no OpenAI or Azure key" in answer["warnings"][0]["message"]


def test_json_is_what_the_api_answers(shell: Shell):
    answer = shell("createinstance", "support-bot", "--team", "Customer care", "--json").json
    assert answer == Caller(make_key()).get("/api/v1/instances/support-bot").json


def test_team_and_organisation_are_reused(shell: Shell):
    for slug in ("support-bot", "sales-bot"):
        shell("createinstance", slug, "--team", "Customer care", "--organisation", "Acme")
    assert (Instance.objects.count(), Team.objects.count(), Organisation.objects.count()) == (2, 1, 1)


def test_a_missing_key_is_said_on_stderr(shell: Shell):
    assert "no OpenAI or Azure key reaches this instance" in shell("createinstance", "support-bot").err


def test_an_existing_slug_is_an_error_and_changes_nothing(shell: Shell):
    shell("createinstance", "support-bot", "--name", "First")
    ran = shell("createinstance", "support-bot", "--name", "Second", "--team", "Other")
    assert (ran.code, ran.out, ran.err) == (4, "", "SLUG: An instance with this slug exists already.\n")
    assert Instance.objects.get().name == "First"
    assert not Team.objects.filter(name="Other").exists()


@pytest.mark.parametrize("slug", ["", "Support", "support_bot", "-bot", "bot-", "a b", "../etc", "x" * 65, "büro"])
def test_a_bad_slug_is_an_error(shell: Shell, slug: str):
    ran = shell("createinstance", "--", slug)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("SLUG: ")
    assert not Instance.objects.exists()


def test_a_long_name_is_an_error(shell: Shell):
    ran = shell("createinstance", "support-bot", "--name", "n" * 101)
    assert (ran.code, ran.err) == (2, "--name: At most 100 characters are allowed; this has 101.\n")


def test_bytes_that_are_no_text_are_an_error(shell: Shell):
    ran = shell("createinstance", "support-bot", "--name", "caf\udce9")
    assert (ran.code, ran.err) == (2, "The arguments are not valid UTF-8.\n")


def test_without_a_slug_it_explains_itself(shell: Shell):
    ran = shell("createinstance")
    assert ran.code == 2
    assert "SLUG" in ran.err


def test_escape_sequences_in_names_do_not_reach_the_terminal(shell: Shell):
    assert "\x1b" not in shell("createinstance", "support-bot", "--team", "a\x1b[31mb").out
