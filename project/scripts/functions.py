"""What the project's configs register; passed to spaCy's commands by `--code`."""

from collections.abc import Callable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.training import Example
from spacy.util import registry

from spacy_sparsecrf.pipeline.corpora import make_annotated_corpus

GIVEN_TAGS = "given_tags"


@registry.readers("sparsecrf_project.GoldTokens.v1")
def gold_tokens(path: Path, given_tags: bool = False) -> Callable[[Language], Iterator[Example]]:
    """Read a .spacy file into Examples whose predicted Docs have the gold tokens.

    path: a DocBin.
    given_tags: whether predicted Docs come with the tags in `user_data["given_tags"]`, as
        observations for a component that predicts other ones (chunks from parts of speech): gold
        tags are the latter there, so that the reader below cannot hand them over by name.
    """
    read = make_annotated_corpus(path, gold_tokens=True)

    def read_given(nlp: Language) -> Iterator[Example]:
        for example in read(nlp):
            tags = example.reference.user_data[GIVEN_TAGS]
            for token, tag in zip(example.predicted, tags, strict=True):
                token.tag_ = tag
            yield example

    return read_given if given_tags else read
