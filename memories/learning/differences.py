"""Differences between two similar texts: in numbers, negation, names, or who does what to whom.

Vectors hardly notice such differences, but one of them makes the newer text a contradiction instead of another wording.
Pure functions, with word lists for the larger European languages and a few others. In scripts without capital letters,
every word counts as a name. When in doubt it is a difference, and a person looks at both texts.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Set
from itertools import pairwise

from memories.chunking import ALPHABETS, IN_WORD

# Numbers with separators and decimals, or words with apostrophes and vowel signs.
LETTERS = rf"(?:(?!\d)(?:{IN_WORD}|[{ALPHABETS}]))+"
TOKEN = re.compile(rf"\d+(?:[.,:/-]\d+)*|{LETTERS}(?:['’]{LETTERS})*|\w+")
SENTENCE_ENDS = ".!?…:"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.casefold().split())


# Without words that are an article, a verb or something else in another language: one, un, due, once, sei, cent.
NUMBER_WORDS = {
    "0": "zero null zéro cero",
    "2": "two zwei deux dos dois twee två два две двух dwa dwie dwóch dva dvě iki δύο δυο doi două két kettő kaksi dua",
    "3": "three drei trois tres três drie tre три трёх трех trzy trzech tři üç τρία τρεις trei három kolme tiga ba",
    "4": "four vier quatre cuatro quattro quatro fyra четыре четырёх cztery čtyři dört τέσσερα patru négy neljä bốn",
    "5": "five fünf cinq cinco cinque vijf fem пять пяти pięć pięciu pět beş πέντε cinci öt viisi",
    "6": "six sechs seis zes шесть шести sześć sześciu šest altı έξι șase kuusi enam sáu",
    "7": "seven sieben siete sette sete zeven sju syv семь семи siedem sedm yedi επτά εφτά șapte seitsemän bảy",
    "8": "eight acht huit ocho otto oito åtta åtte восемь восьми osiem osm sekiz οκτώ οχτώ nyolc kahdeksan delapan tám",
    "9": "nine neun neuf nueve nove negen nio девять девяти dziewięć devět dokuz εννέα εννιά nouă kilenc yhdeksän chín",
    "10": "ten zehn dix diez dieci dez tien десять десяти dziesięć deset δέκα zece tíz kymmenen sepuluh mười",
    "11": "eleven elf onze undici",
    "12": "twelve zwölf douze doce dodici doze twaalf",
    "20": "twenty zwanzig vingt veinte venti vinte twintig",
    "30": "thirty dreißig trente treinta trenta trinta dertig",
    "100": "hundred hundert cien cento cem honderd",
    "1000": "thousand tausend mille mil duizend",
    "1000000": "million millionen millions millón millones milione milioni milhão milhões miljoen",
    "twice": "twice zweimal",
    "half": "half halb halbe halben moitié mitad metà metade helft",
}
# Only languages that do not capitalise months and days: capitalised ones are treated as names.
MONTHS = (
    """janvier enero gennaio janeiro januari
    январь января январе styczeń stycznia styczniu ledna lednu ianuarie""",
    """février febrero febbraio fevereiro februari
    февраль февраля феврале luty lutego lutym únor února únoru februarie""",
    """marzo março maart
    март марта марте marzec březen března březnu mars martie""",
    """avril abril aprile
    апрель апреля апреле kwiecień kwietnia kwietniu duben dubna dubnu april aprilie""",
    """mayo maggio maio mei
    май мая мае maj maja maju květen května květnu""",
    """juin junio giugno junho
    июнь июня июне czerwiec czerwca czerwcu červen června červnu juni iunie""",
    """juillet julio luglio julho
    июль июля июле lipiec lipca lipcu červenec července červenci juli iulie""",
    """août agosto augustus
    август августа августе sierpień sierpnia sierpniu srpen srpna srpnu augusti august""",
    """septembre septiembre settembre setembro
    сентябрь сентября сентябре wrzesień września wrześniu září september septembrie""",
    """octobre octubre ottobre outubro
    октябрь октября октябре październik października październiku říjen října říjnu oktober octombrie""",
    """novembre noviembre novembro
    ноябрь ноября ноябре listopad listopada listopadzie listopadu november noiembrie""",
    """décembre diciembre dicembre dezembro
    декабрь декабря декабре grudzień grudnia grudniu prosinec prosince prosinci december decembrie""",
)
DAYS = (
    """lundi lunes lunedì segunda maandag
    måndag mandag понедельник понедельника poniedziałek poniedziałku pondělí pazartesi luni hétfőn""",
    """mardi martes martedì terça dinsdag
    tisdag tirsdag вторник вторника wtorek wtorku úterý salı marți kedden""",
    """mercredi miércoles mercoledì quarta woensdag
    onsdag среда среду среды środa środę środy středa středu çarşamba miercuri szerdán""",
    """jeudi jueves giovedì quinta donderdag
    torsdag четверг четверга czwartek czwartku čtvrtek perşembe joi csütörtökön""",
    """vendredi viernes venerdì sexta vrijdag
    fredag пятница пятницу пятницы piątek piątku pátek cuma vineri pénteken""",
    """samedi sábado sabato zaterdag
    lördag lørdag суббота субботу субботы sobota sobotę soboty sobotu cumartesi sâmbătă szombaton""",
    """dimanche domingo domenica zondag
    söndag søndag воскресенье воскресенья niedziela niedzielę niedzieli neděle neděli pazar duminică vasárnap""",
)
FIGURES = {
    **{word: figure for figure, words in NUMBER_WORDS.items() for word in _words(words)},
    **{word: f"month {n}" for n, words in enumerate(MONTHS, start=1) for word in _words(words)},
    **{word: f"day {n}" for n, words in enumerate(DAYS, start=1) for word in _words(words)},
}

NEGATIONS = _words(
    """not no never none nobody nothing neither nor cannot without hardly unable
    nicht nichts nie niemals niemand kein keine keinen keinem keiner keines ohne weder
    pas jamais aucun aucune rien personne sans ni non
    nunca jamás nada nadie ningún ninguno ninguna sin tampoco
    mai senza nessuno nessuna niente né
    não sem nenhum nenhuma ninguém nem
    niet niets nooit geen niemand zonder
    inte ingen inget inga aldrig utan ikke ingenting aldri uden
    nie nigdy nikt nic bez żaden není nejsou nikdy nemá
    не нет ни никогда никто ничего без нельзя
    nu niciodată fără nimic nimeni không chưa chẳng đừng tidak bukan belum tanpa ei eivät emme ilman nem soha senki
    δεν μην όχι ποτέ χωρίς κανείς τίποτα nije nisu nisam nikad
    değil yok hiç hayır asla لا ليس لم لن بدون אין לא אל ללא"""
)
# As in unpaid, unglücklich, désactivé, onbetaald, olycklig, nepije, niepełny, неженат.
NEGATIVE_BEGINNINGS = _words("un in im ir il dis non mis des dés on o u ne nie не без epä")
# Words that end, reverse or move into the past what the rest of the sentence says.
REVERSALS = _words(
    """stopped stops quit quits cancelled canceled cancels former formerly previously anymore
    dislikes dislike disliked hates hate hated refuses refuse refused rejects rejected declined against except avoids
    ehemals ehemaliger ehemalige früher hasst aufgehört abgesagt gekündigt lehnt außer
    déteste arrêté annulé ancien ancienne refuse sauf odia dejó canceló cancelado rechaza excepto
    smesso annullato rifiuta deixou cancelou recusa odeia"""
)
NEGATIVE_SIGNS = "不没沒無无非未勿別别"
NEGATIVE_ENDINGS = ("n't", "n’t", "ない", "ません", "なかった")

# Not names when they are capitalised at the beginning of a sentence.
FUNCTION_WORDS = _words(
    """a an the this that these those he she it they we i you his her its their our my your who which there here in on
    at by for from of to with and but or as if when while after before since during until about also both each every
    some many most all is are was were has have had does do did will would can could may might should must
    der die das ein eine einer er sie es wir ihr ihre sein seine ich du in im am an auf bei für von mit und oder aber
    als wenn während nach vor seit ist sind war hat haben wird dieser diese dieses
    le la les l un une des du de il elle ils elles on nous vous je son sa ses leur et ou mais en dans à au aux pour avec
    par sur est sont a ont ce cette el los las lo una unos unas él ella ellos su sus y o pero en con por para es son al
    il lo gli i uno lui lei loro suo sua e ed ma di da per è sono o os as um uma ele ela seu e mas em no na do da é são
    de het een hij zij ze haar zijn en maar van voor met is"""
)


def differences(old: str, new: str) -> list[str]:
    """The kinds of differences, in words; empty if one text may replace the other."""
    old, new = unicodedata.normalize("NFKC", old), unicodedata.normalize("NFKC", new)
    kinds = {
        "numbers or dates": _figures(old) != _figures(new),
        "negation": _negations(old) != _negations(new) or _is_negated_inside(old, new),
        "names": _disagree_about_names(old, new),
        "who does what": _swap(old, new),
    }
    return [kind for kind, differs in kinds.items() if differs]


def overlap(old: str, new: str) -> float:
    """The share of words that two texts have in common, from 0 to 1."""
    first, second = set(_folded(old)), set(_folded(new))
    return len(first & second) / len(first | second) if first | second else 1.0


def _folded(text: str) -> list[str]:
    return [_bare(token).casefold() for token in TOKEN.findall(text)]


def _bare(token: str) -> str:
    """The word without a genitive: Alice's is Alice."""
    return re.sub(r"['’]s?$", "", token)


def _figures(text: str) -> Counter[str]:
    return Counter(figure for token in _folded(text) if (figure := _figure(token)))


def _figure(token: str) -> str:
    if token[:1].isdigit():
        # 1,000 and 1.000 are both a thousand. 1.50 stays as it is.
        joined = re.sub(r"(?<=\d)[.,](?=\d{3}(?:\D|$))", "", token)
        return "".join(str(unicodedata.digit(sign)) if sign.isdigit() else sign for sign in joined)
    return FIGURES.get(token, "")


def _negations(text: str) -> tuple[int, Counter[str]]:
    lower = text.casefold()
    words = _folded(text)
    plain = sum(word in NEGATIONS for word in words) + sum(lower.count(sign) for sign in NEGATIVE_SIGNS)
    endings = sum(len(re.findall(re.escape(ending), lower)) for ending in NEGATIVE_ENDINGS)
    return plain + endings, Counter(word for word in words if word in REVERSALS)


def _is_negated_inside(old: str, new: str) -> bool:
    """Whether one text has a word and the other has it with a beginning that negates it, such as paid and unpaid."""
    first, second = set(_folded(old)), set(_folded(new))
    return _negates(first - second, second - first) or _negates(second - first, first - second)


def _negates(words: Set[str], others: Set[str]) -> bool:
    # Shorter words would make “to” of “into”.
    return any(beginning + word in others for word in words if len(word) > 2 for beginning in NEGATIVE_BEGINNINGS)


def _disagree_about_names(old: str, new: str) -> bool:
    """Whether one text has a name that the other does not contain, whatever its case."""
    first, second = set(_folded(old)), set(_folded(new))
    return not set(_names(old)) <= second or not set(_names(new)) <= first or _identifiers(old) != _identifiers(new)


def _names(text: str) -> Iterator[str]:
    for match in TOKEN.finditer(text):
        token = _bare(match[0])
        folded = token.casefold()
        if _figure(folded) or folded in NEGATIONS or folded in REVERSALS:
            continue
        has_case = token[:1].lower() != token[:1].upper()
        is_plain = token == token.lower() or (folded in FUNCTION_WORDS and _starts_sentence(text, match.start()))
        if not (has_case and is_plain):
            yield folded


def _starts_sentence(text: str, place: int) -> bool:
    before = text[max(0, place - 4) : place].rstrip(" \n\"'“„«(")
    return not before or before[-1] in SENTENCE_ENDS


def _identifiers(text: str) -> set[str]:
    """Addresses, codes and file names: words of letters together with digits or signs."""
    parts = {part.strip(".,;:!?()[]{}\"'“”„«»").casefold() for part in text.split()}
    return {part for part in parts if re.search(r"[\d_@/]", part) and re.search(r"[^\W\d_]", part)}


def _swap(old: str, new: str) -> bool:
    """Whether they have the same names, or exactly the same words, in another order."""
    if _first_seen(_names(old)) != _first_seen(_names(new)) and set(_names(old)) == set(_names(new)):
        return True
    first, second = _folded(old), _folded(new)
    return Counter(first) == Counter(second) and Counter(pairwise(first)) != Counter(pairwise(second))


def _first_seen(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(names))
