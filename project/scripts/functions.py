"""What the project's configs register; passed to spaCy's commands by `--code`."""

from collections.abc import Callable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import registry

GIVEN_TAGS = "given_tags"


@registry.readers("sparsecrf_project.GoldTokens.v1")
def gold_tokens(path: Path, given_tags: bool = False) -> Callable[[Language], Iterator[Example]]:
    """Read a .spacy file into Examples whose predicted Docs have the gold tokens.

    Docs are unpacked once and kept: training with a batch solver evaluates after every
    iteration, and unpacking would be a good part of it.

    path: a DocBin.
    given_tags: whether predicted Docs come with the tags in `user_data["given_tags"]`, as
        observations for a component that predicts other ones (chunks from parts of speech).
    """
    kept: dict[int, list[Doc]] = {}

    def read(nlp: Language) -> Iterator[Example]:
        if id(nlp.vocab) not in kept:
            docs = DocBin().from_disk(path).get_docs(nlp.vocab)
            kept[id(nlp.vocab)] = [doc for doc in docs if len(doc)]
        for gold in kept[id(nlp.vocab)]:
            yield Example(_unannotated(gold, given_tags), gold)

    return read


def _unannotated(gold: Doc, given_tags: bool) -> Doc:
    return Doc(
        gold.vocab,
        words=[token.text for token in gold],
        spaces=[bool(token.whitespace_) for token in gold],
        tags=list(gold.user_data[GIVEN_TAGS]) if given_tags else None,
    )
