from typing import Any

from django.core.management.base import CommandParser

from memories.cli.recalling import WRITTEN_AS, add_settings, evaluation_json, given_settings, plain_evaluation
from memories.recall.golden import Variant, evaluate, golden_queries
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
        changes = read(RecallSettings, given_settings(options))
        demanded = read(Demand, {"at_least": options["at_least"]}).at_least
        if demanded is not None and not 0 <= demanded <= 1:
            raise Invalid({"atLeast": ["Choose a value from 0 to 1."]})
        scope = open_from_shell(options["instance"])
        if not golden_queries(scope):
            self.fail(f"{scope.instance.slug} has no golden queries. Mark what is expected on the Recall page.")
        variants = evaluate(scope, changes)
        if options["json"]:
            self.print_json(evaluation_json(variants))
        else:
            self.stdout.write(plain_evaluation(variants))
        self._check(variants, demanded)

    def _check(self, variants: list[Variant], demanded: float | None) -> None:
        """The changed settings if there are any, otherwise the current ones, must be good enough."""
        judged = next((one for one in variants if one.name == "changed"), variants[0])
        reached = judged.quality
        if demanded is not None and (reached is None or reached.recall < demanded):
            shown = "unknown" if reached is None else f"{reached.recall:.3f}"
            self.fail(f"Recall@{judged.k} of the {judged.name} settings is {shown}, less than {demanded:g}.")
