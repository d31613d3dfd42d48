from typing import Any

from django.core.management.base import CommandParser

from memories.cli.recalling import WRITTEN_AS, add_settings, evaluation_json, plain_evaluation, settings_in
from memories.recall.golden import Variant, evaluate, golden_queries, hindrance
from memories.recall.request import RecallSettings
from memoryconsole.commands import ConsoleCommand, add_json_option, open_from_shell
from memoryconsole.errors import Invalid
from memoryconsole.inputs import Fraction, Input, read


class Demand(Input):
    at_least: Fraction | None = None


class Command(ConsoleCommand):
    help = "Measures recall on the golden queries of one instance, by its settings and by others, side by side."
    written_as = WRITTEN_AS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--instance", metavar="SLUG", required=True, help="whose golden queries")
        add_settings(parser)
        parser.add_argument("--at-least", metavar="X", help="fail with exit code 1 when Recall@k is lower; 0 to 1")
        add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        changes = read(RecallSettings, settings_in(options))
        demanded = read(Demand, {"at_least": options["at_least"]}).at_least
        if demanded is not None and not 0 <= demanded <= 1:
            raise Invalid({"atLeast": ["Choose a value from 0 to 1."]})
        scope = open_from_shell(options["instance"])
        if not golden_queries(scope):
            self.fail(f"{scope.instance.slug} has no golden queries. Mark what is expected on the Recall page.")
        variants = evaluate(scope, changes)
        if reason := hindrance(variants):
            self.complain(reason)
        if options["json"]:
            self.print_json(evaluation_json(variants))
        else:
            self.stdout.write(plain_evaluation(variants))
        self._check(variants, demanded)

    def _check(self, variants: list[Variant], demanded: float | None) -> None:
        """Fail if the changed settings, or else the current ones, are not good enough."""
        judged = next((one for one in variants if one.name == "changed"), variants[0])
        quality = judged.quality
        if demanded is not None and (quality is None or quality.recall < demanded):
            shown = "unknown" if quality is None else f"{quality.recall:.3f}"
            self.fail(f"Recall@{judged.k} of the {judged.name} settings is {shown}, less than {demanded:g}.")
