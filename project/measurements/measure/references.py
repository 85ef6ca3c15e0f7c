"""Write corpora whose entities have full stops: references to laws, and citations of authors.

python -m measure.references OUTPUT
"""

import random
import re
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc, DocBin

SENTENCES = {"train": 2500, "dev": 1000, "test": 1000}
# Rules of a grammar: words, or alternatives in lines. <rule> is replaced by one of them, <90> by a
# number from 1 to 90, and [LABEL text] is an entity. A name is of one part only.
_NAMES = {
    "start": "b c d f g h j k l m n p r s t v w br cl dr gr pl st tr",
    "vowel": "a e i o u ai ea or er an el",
    "middle": "<start><vowel>\n\n",
    "end": "n r s t l m ck nd th ton ley by ford den man",
    "new": "<start><vowel><middle><end>\n",
    "initial": "A B C D E F G H J K L M N P R S T W",
    "person": "[PER <initial>. <name>]\n[PER <initial>. <initial>. <name>]\n[PER <name>]",
    "place": "[LOC <name>]\n[LOC St. <name>]\n[LOC Mt. <name>]",
}
LAW = _NAMES | {
    "noun": "claim appeal reply notice order rule duty charge debt title lease tenant clerk panel",
    "verb": "rejected allowed noted applied read cited considered dismissed upheld followed",
    "judge": "<person>\n[PER Mr. <name>]\n[PER <name> J.]",
    "firm": "[ORG <name> Co.]\n[ORG <name> & <name> Ltd.]\n[ORG St. <name> Assoc.]\n[ORG <name>]",
    "act": "Reg. No. <99>\nthe <name> Act\nDir. <99>/<900>\nDecr. No. <900> of 19<90>\nC. Civ.",
    "article": "art. <400>\nart. <400>, par. <9>\nSec. <90>\narts. <400> ff.\nch. <30>",
    "law": "[LAW <article> of <act>]\n[LAW <article>]\n[LAW <article> <act>]\n"
    "[LAW <act>, <article>]",
    "case": "[CASE <name> v. <name>]\n[CASE <name> v. <name> Co.]\n[CASE Case No. <900>]\n"
    "[CASE Re <name>]\n[CASE App. No. <99>/<900>]",
    "plain": "no. <20> on the list\np. <400>\npara. <50> below\nvol. <9> p. <400>\nthe <noun>\n"
    "<400> days\ni.e. the <noun>\napprox. <400> pages",
    "who": "<judge>\n<firm>\nThe <noun>\nThe court\n<place>",
    "what": "<law>\n<law>\n<case>\n<plain>\n<plain>\n<judge>\n<firm>",
    "tail": "\n\n on <plain>\n of <place>\n against <firm>\n by <judge>\n under <law>\n"
    " as in <case>",
    "sentence": "<who> <verb> <what><tail>.\n<who> <verb> <what><tail>.\nSee <what> and <plain>.\n"
    "<what><tail>.\nUnder <law> the <noun> was <verb><tail>.\nCf. <what>; <law>.\n"
    "The <noun> in <place> was <verb> by <judge>.\n<30>. <who> <verb> the <noun>.\n"
    "It was <verb> that <law>, not <what>, governs the <noun><tail>.",
}
CITATIONS = _NAMES | {
    "author": "Hom Soph Eur Aesch Pind Thuc Plat Arist Verg Hor Cic Liv Ov Luc Stat Tac Plut Paus",
    "work": "Il Od Aj Ant Phil El Or Tro Hec Pers Sept Eum Ol Pyth Nem Rep Leg Symp Poet Rhet Aen",
    "at": "<900>\n<24>. <900>\n<24>.<900>\n<400> f.\n<400> ff.\n<12>, <99>\n<9>. <9>. <20>",
    "ref": "[BIBL <author>. <work>. <at>]\n[BIBL <author>. <work>. <at>]\n[BIBL <work>. <at>]\n"
    "[BIBL <author>. <at>]\n[BIBL <author>. fr. <400>]\n[BIBL O. T. <at>]\n[BIBL C. I. G. <900>]",
    "text": "[WORK <work>.]\n[WORK O. C.]\n[WORK <author>. <work>.]",
    "plain": "v. <400>\nvv. <400> ff.\np. <400> n. <9>\nl. c.\nlines <400>\n§ <99>\n"
    "ca. <400> B. C.",
    "word": "the acc.\nthe gloss\nthis verb\nthe gen. abs.\nthe simile\nthe dat.",
    "verb": "reads takes compares prints defends deletes joins follows explains cites",
    "who": "<person>\n<person>\n[PER <author>.]\n<text>\nhe\nthe Schol.",
    "what": "<ref>\n<ref>\n<ref>\n<plain>\n<text>",
    "sentence": "Cf. <what>; <plain>.\nSo <what>.\n<what>: <word> is rare.\n"
    "In <text> <who> has <word>.\n"
    "<who> <verb> <word> with <what>.\nFor <word> see <what>, and <person> on <ref>.\n"
    "At <place> <who> found it.\n<who> <verb> <what> here, e. g. at <place>.\n"
    "<900>. <word>, like <what>.\nNot so <who>, who <verb> <what>.",
}


def expand(rule: str, grammar: dict[str, str], rng: random.Random) -> str:
    """Return a text of a rule."""
    text = f"<{rule}>"
    while found := re.search(r"<(\w+)>", text):
        key = found[1]
        if key.isdigit():
            chosen = str(rng.randint(1, int(key)))
        else:
            own = grammar[key]
            chosen = rng.choice(own.split("\n") if "\n" in own else own.split())
        text = text[: found.start()] + chosen + text[found.end() :]
    return text


def doc_of(marked: str, nlp: Language) -> Doc:
    """Return the Doc of a text with marked entities. A full stop ends an entity and a sentence."""
    text, spans = "", []
    for before, label, inner in re.findall(r"([^[]*)(?:\[(\w+) ([^]]*)\])?", marked):
        text += before
        if label:
            spans.append((len(text), len(text) + len(inner), label))
            text += inner
    text = text[0].upper() + text[1:].removesuffix("..") + "." * text.endswith("..")
    doc = nlp.make_doc(text)
    found = [doc.char_span(*own, alignment_mode="expand") for own in spans]
    doc.ents = spacy.util.filter_spans([span for span in found if span is not None])
    return doc


def main(output: Annotated[Path, typer.Argument(help="Directory for .spacy files")]) -> None:
    """Write the parts of both corpora; no name is in two parts."""
    output.mkdir(parents=True, exist_ok=True)
    for name, grammar in {"law": LAW, "cit": CITATIONS}.items():
        rng, nlp = random.Random(20261126), spacy.blank("en")
        names = sorted({expand("new", grammar, rng).capitalize() for _ in range(2500)} - {""})
        rng.shuffle(names)
        for i, (part, n) in enumerate(SENTENCES.items()):
            own = grammar | {"name": " ".join(names[i::3])}
            docs = [doc_of(expand("sentence", own, rng), nlp) for _ in range(n)]
            DocBin(docs=docs).to_disk(output / f"{name}.{part}.spacy")


if __name__ == "__main__":
    typer.run(main)
