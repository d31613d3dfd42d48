"""Hints about a memory's role: a text may sound like another role than the one it has.

It is only a hint; nothing is refused or changed. The rules are regular expressions, one per line, in English, German,
French and Spanish. The question above each group is what tells its role from the others.
"""

import re
from dataclasses import dataclass

from memories.vocabulary import Role

LOOKED_AT = 1_000

# If a text matches two roles equally often, the earlier one wins.
PHRASES = {
    # Is it something discovered about who the assistant is, and what it is there for?
    Role.IDENTITY: """
        i(?: am|'m|’m) (?:also )?(?:responsible|in charge|the \\w+ (?:bot|assistant|agent))
        my (?:role|job|purpose|responsibility|name) is
        i was (?:built|made|created) to
        ich bin (?:auch )?(?:zuständig|verantwortlich)
        meine? (?:rolle|aufgabe|zweck|name) ist
        je suis (?:aussi )?(?:responsable|chargée?) de
        mon rôle est
        soy (?:también )?(?:responsable|el encargado|la encargada)
        mi (?:función|papel) es
    """,
    # Does it point to where something is?
    Role.REFERENCE: """
        https?://\\S+
        (?:[\\w-]{1,63}\\.){1,4}(?:internal|local|com|org|net|io|dev|de)/\\S+
        (?:is|are) documented (?:in|at|on)
        found (?:at|under|in the (?:wiki|docs|handbook))
        see (?:the )?(?:docs|wiki|runbook|manual)
        dashboard (?:is )?at
        zu finden (?:unter|in)
        dokumentiert (?:in|unter)
        siehe (?:das |die )?(?:wiki|handbuch|anleitung|seite)
        se trouve (?:sur|dans)
        voir (?:la documentation|le wiki)
        documentado en
        se encuentra en
    """,
    # Does it commit to doing things one way and not another?
    Role.DECISION: """
        decided|chose|chosen|agreed|opted for|settled on
        (?:we're|we’re|we are) going with
        from now on
        entschieden|beschlossen|vereinbart|festgelegt
        ab sofort
        (?:avons|a|ont) (?:décidé|choisi|convenu)
        désormais
        (?:hemos|ha|han) (?:decidido|elegido|acordado)
        a partir de ahora
    """,
    # Is it an insight that holds beyond the case it came from?
    Role.LESSON: """
        never|always
        lessons? learn(?:ed|t)
        (?:we|i) learn(?:ed|t) (?:that|to|not)
        next time|turns out|beware of|make sure (?:to|that)
        (?:do not|don't|don’t|avoid) [^.!?]{0,80}(?:because|since|or else|unless)
        niemals|nie wieder|immer (?:erst|zuerst|vorher|nur)
        beim nächsten mal|gelernt,? dass
        ne jamais|jamais plus|la prochaine fois
        nunca|la próxima vez
    """,
    # Is it over and done with?
    Role.HISTORICAL: """
        (?:was|were|has been|have been|is) (?:successfully )?(?:completed|finished|closed|retired|discontinued)
        (?:completed|finished) (?:successfully )?(?:on|in|last)
        used to (?:be|have|work|live)
        back in (?:19|20)\\d\\d|last year|years ago|no longer
        abgeschlossen|beendet|erledigt|eingestellt
        früher|letztes jahr|nicht mehr
        (?:a|ont) été (?:terminée?s?|achevée?s?)
        autrefois|l'année dernière
        (?:fue|fueron|ha sido) (?:completad|terminad|cerrad)[oa]s?
        el año pasado
    """,
    # Is it situational, and true just now?
    Role.CONTEXT: """
        in progress|currently|at the moment|right now|ongoing|is (?:up )?next|this week
        derzeit|aktuell|momentan|zurzeit|in arbeit|läuft (?:noch|gerade)|diese woche
        en cours|actuellement|en ce moment|cette semaine
        en curso|actualmente|ahora mismo|esta semana
    """,
}


def _rule(phrases: str) -> re.Pattern[str]:
    any_line = "|".join(line.strip() for line in phrases.strip().splitlines())
    return re.compile(rf"(?<!\w)(?:{any_line})(?!\w)", re.IGNORECASE)


RULES = {role: _rule(phrases) for role, phrases in PHRASES.items()}


@dataclass(frozen=True, slots=True)
class RoleHint:
    """The role the text sounds like, and the words that suggest it."""

    role: Role
    words: str

    @property
    def reason(self) -> str:
        article = "an" if self.role == Role.IDENTITY else "a"
        return f"“{self.words}” sounds like {article} {self.role.label.lower()}."


def role_hint(content: str, role: str) -> RoleHint | None:
    """Suggest another role if the text matches its rules and none of the current role's."""
    text = " ".join(content[:LOOKED_AT].split())
    found = {each: words for each, rule in RULES.items() if (words := _distinct(rule, text))}
    if not found or role in found:
        return None
    best = max(found, key=lambda each: len(found[each]))
    return RoleHint(best, found[best][0])


def _distinct(rule: re.Pattern[str], text: str) -> list[str]:
    """The distinct matches, in the order of the text."""
    return list({match.group().lower(): match.group()[:60] for match in rule.finditer(text)}.values())
