"""Our entity recognizer and CRFsuite, with the same features, labels and penalty.

The component's own featurizer and target produce CRFsuite's input. CRFsuite supports neither a
start label nor label pairs conjoined with an attribute, so our recognizer does without them here.
Weights exist for the feature-label pairs and the transitions observed in the training part, so that
both minimise the same function; the run fails if the minima differ. Both train to convergence,
without the development part. Only decoding differs: our recognizer excludes invalid label
sequences, and is also scored without that constraint.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import spacy
from measure import PROJECT
from measure.processes import measured
from spacy.tokens import Doc
from spacy.util import load_config

from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.features.defaults import ENTITY_TEMPLATES
from spacy_sparsecrf.pipeline.corpora import make_annotated_corpus

from . import peers
from .record import Options

CONFIG = PROJECT / "configs" / "conll2002_es.cfg"
FACTORY = "sparse_crf_ner"
OURS, FREE = "spacy-sparsecrf", "spacy-sparsecrf, unconstrained"
# CRFsuite stops when ten iterations improve by less than delta, relative; its default is 1e-5.
_STOPPING = {"epsilon": 1e-5, "delta": 1e-6}
_CLOSE = 1e-3  # relative difference allowed between objectives


def plain(templates: Sequence[str]) -> list[str]:
    """Return templates without label-pair features except plain transitions."""
    reads = [template.partition(":")[2] for template in templates if template[0] != "b"]
    return ["b:", *(f"u:{read}" for read in dict.fromkeys(reads))]


class Recognizers:
    """Both recognizers on the training part of a corpus.

    quick: use few sentences; examples: of all parts; figures: of training, by recognizer.
    """

    def __init__(self, corpus: Path, quick: bool) -> None:
        read = load_config(CONFIG)
        features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "start_label": False}
        changed = {
            "features": {**features, "templates": plain(ENTITY_TEMPLATES)},
            # For CRFsuite: neither possible states nor possible transitions.
            "learning": {"observed_only": True, "store_feature_names": False},
            "n_threads": 1,
            # Several predictions overwrite each other in the same Docs.
            "overwrite": True,
        }
        settings = {**read["components"][FACTORY], **changed}
        self.nlp = spacy.blank(read["nlp"]["lang"])
        self.pipe: Any = self.nlp.add_pipe(settings.pop("factory"), FACTORY, config=settings)
        self.examples = {
            part: list(make_annotated_corpus(path, gold_tokens=True)(self.nlp))
            for part in ("train", "dev", "test")
            for path in [corpus / f"conll2002-es-{part}.spacy"]
        }
        self._train = self.examples["train"][: 200 if quick else None]
        self.figures: dict[str, dict[str, Any]] = {FREE: {}}

    def attributes(self, docs: Sequence[Doc]) -> Iterator[list[list[str]]]:
        """Yield CRFsuite's attributes of each Doc's tokens: the hashes of their features."""
        for doc in docs:
            found = self.pipe.features([doc], "docs")
            rows = found.hashes[:, found.unigram_columns].tolist()
            yield [[format(key, "x") for key in row if key] for row in rows]

    def train_ours(self) -> None:
        """Train the component to convergence."""
        with measured() as cost:
            self.nlp.initialize(lambda: self._train)
            objective, before = 0.0, np.inf
            while objective != before:
                before, objective = objective, self.nlp.update(self._train[:1])[FACTORY]
            # The model is completed by the first prediction.
            self.pipe.predict([self._train[0].predicted])
        figures = {"objective": objective, "active": self.pipe.model.n_active}
        self.figures[OURS] = {"cpu": cost.cpu, **figures}

    def train_crfsuite(self, model: Path) -> None:
        """Train CRFsuite on the label ids of the component."""
        import pycrfsuite

        number = {label: str(i) for i, label in enumerate(self.pipe.label_data)}
        penalty = {"c1": self.pipe.settings.l1, "c2": self.pipe.settings.l2 / 2}
        parameters = {**peers.PARAMETERS, **penalty, **_STOPPING}
        trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=parameters, verbose=False)
        with measured() as cost:
            attributes = self.attributes([example.predicted for example in self._train])
            for example, found in zip(self._train, attributes, strict=True):
                trainer.append(found, [number[y] for y in self.pipe.target.gold(example)])
            trainer.train(str(model))
        last = trainer.logparser.last_iteration
        figures = {"objective": last["loss"], "active": last["active_features"]}
        self.figures[peers.CRFSUITE] = {"cpu": cost.cpu, **figures}

    def score(self, part: str, model: Path) -> None:
        """Score whole entities on a part, with gold tokens."""
        docs = [example.predicted for example in self.examples[part]]
        tagger = peers.open_tagger(model)
        free = Decoder(self.pipe.model).viterbi(self.pipe.features(docs, "docs"))
        ids = {
            OURS: self.pipe.predict(docs),
            FREE: np.split(free, np.cumsum([len(doc) for doc in docs])[:-1]),
            peers.CRFSUITE: [np.array(tagger.tag(x), np.int32) for x in self.attributes(docs)],
        }
        for name, found in ids.items():
            self.pipe.set_annotations(docs, found)
            scores = self.pipe.score(self.examples[part])
            self.figures[name] |= {f"{part}_{key}": 100 * scores[f"ents_{key}"] for key in "prf"}


def measure(options: Options) -> None:
    """Train both, and score both parts. RAISES: ValueError if the minima differ."""
    both = Recognizers(options.folder / "corpus", options.quick)
    settings = {"l1": both.pipe.settings.l1, "l2": both.pipe.settings.l2}
    record = options.record("entities", **settings)
    with TemporaryDirectory() as directory:
        path = Path(directory) / "model.crfsuite"
        both.train_ours()
        both.train_crfsuite(path)
        for part in ("dev", "test"):
            both.score(part, path)
    for name in (OURS, FREE, peers.CRFSUITE):
        record.add(name, **both.figures[name])
    ours, theirs = (both.figures[name]["objective"] for name in (OURS, peers.CRFSUITE))
    if abs(ours - theirs) > _CLOSE * theirs:
        raise ValueError(f"CRFsuite has another minimum: {theirs}, not {ours}")
