"""Every message of the package, with its code, its exception and its warning category."""

import warnings
from collections.abc import Iterable
from string import Formatter
from typing import Any

# Addresses of the site and of the repository, also for configs, setup.py and docs/site_pages.py.
# Placeholders: the nox session `build` fails as long as one has the domain .example.
DOCUMENTATION = "https://spacy-sparsecrf.example/docs"
REPOSITORY = "https://spacy-sparsecrf.example/repository"

# Characters that command a terminal or change the order of text.
UNSAFE = {chr(i): f"\\u{i:04x}" for i in (*range(32), *range(127, 160), 0x61C, 0x200E, 0x200F)}
UNSAFE |= {chr(i): f"\\u{i:04x}" for i in (*range(0x2028, 0x202F), *range(0x2066, 0x206A))}
# Halves of surrogate pairs cannot be printed.
_UNSAFE = str.maketrans(UNSAFE) | {i: f"\\u{i:04x}" for i in range(0xD800, 0xE000)}
_UNSAFE |= {ord("\t"): "\t", ord("\n"): "\n"}

_LONGEST = 60  # characters of a value in a message


def printable(text: object) -> str:
    """Return a text with unsafe characters escaped, except for tabs and line ends."""
    return str(text).translate(_UNSAFE)


class SparseCRFWarning(UserWarning):
    """Warn of something in data or settings that is probably a mistake."""


class SparseCRFError(ValueError):
    """Report an error of this package; the message starts with its code."""

    def __str__(self) -> str:
        """Return the message, which is safe to print."""
        return printable(super().__str__())


class MissingExtraError(SparseCRFError, ImportError):
    """Report a package that an extra of this one installs."""


def warn(message: str) -> None:
    """Raise a SparseCRFWarning, attributed to the caller of the calling function."""
    warnings.warn(printable(message), SparseCRFWarning, stacklevel=3)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question with the nearest of the known names, for a message; "" if none is near."""
    from difflib import get_close_matches

    # Without arguments, as in prefix(3).
    keys = {each.lower().partition("(")[0]: each for each in known}
    found = get_close_matches(name.lower().partition("(")[0], keys, 1, 0.66)
    return f"Did you mean {keys[found[0]]}? " if found else ""


def brief(value: object) -> str:
    """Return a value as Python writes it, cut to 60 characters, for a message."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class _Values(Formatter):
    """Cut values `!r` in messages."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return brief(value) if conversion == "r" else super().convert_field(value, conversion)


class _Message(str):
    """A message in which values can be inserted."""

    def format(self, *args: object, **values: object) -> str:
        return _Values().vformat(self, args, values)


class _Coded(type):
    """Put the code in front of each message, as spaCy does: `[SC001] ...`."""

    def __getattribute__(cls, code: str) -> str:
        message: str = super().__getattribute__(code)
        return message if code.startswith("_") else _Message(f"[{code}] {message}")


RECIPE = f"{DOCUMENTATION}/entities/ has a recipe for other formats"


def _install(extra: str) -> str:
    return (
        f"Run `pip install 'spacy-sparsecrf[{extra}]'` or, if you installed a wheel file, "
        f"`pip install 'FILE.whl[{extra}]'` with its path"
    )


class Errors(metaclass=_Coded):
    """Messages of errors: what failed, with which value, where, and what to do."""

    # SC1xx: features
    SC101 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, is malformed at "
        "character {position}: expected {expected}; found {found}. Correct the template."
    )
    SC102 = "[components.NAME.features] templates = {value!r} is not a list of strings. Write one."
    SC103 = '[components.NAME.features] templates is empty. Name one, such as "u:lower[0]".'
    SC104 = (
        "Template {second} of [components.NAME.features] templates, {second_text!r}, repeats "
        "template {first}, {first_text!r}: both are the same feature of {conjoined}. Remove one."
    )
    SC105 = "[components.NAME] sequences = {value!r} is not supported. Choose one of: {known}."
    SC106 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, names no "
        "template set: correct it. {nearest}Use one of: {known}."
    )
    SC110 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, has a regular "
        f"expression, which needs the package `regex`. {_install('regex')}."
    )
    SC111 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, has a malformed "
        "regular expression: {reason}, at character {position} of the template. Correct it."
    )
    SC112 = (
        "The regular expression of template {number} of [components.NAME.features] templates, "
        "{template!r}, took more than {seconds} s for {text!r}. Rewrite it with less repetition."
    )
    SC120 = (
        "[components.NAME.features] templates read token._.{name}, which is not registered. Call "
        'Token.set_extension("{name}", default=None) before.'
    )
    SC121 = (
        "[components.NAME.features] templates read token._.{name}, which is a {kind} at the token "
        "{text!r}. Set it to a string, an integer, true or false, or None for no value."
    )
    SC125 = (
        "[components.NAME.features] templates read token.vector, but the pipeline has no vectors. "
        "Set [initialize] vectors, or run a tok2vec pipe in training."
    )
    SC126 = (
        "[components.NAME.features] templates read vectors of {trained} dimensions in training, "
        "but vectors now have {found}. Load those of training."
    )
    SC127 = (
        "[components.NAME.features] templates read token.vector, which is not finite at the token "
        "{text!r} of the Doc that begins {doc!r}. Repair or replace [initialize] vectors."
    )
    SC131 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, names {name!r}. "
        "Add it to `{setting}` there, or use one of: {known}."
    )
    SC132 = (
        "[components.NAME.features] phrases = {value!r} is not valid. Write names with files or "
        'lists of phrases: {{"streets": "streets.txt", "titles": ["Dr.", "Prof."]}}.'
    )
    SC133 = "[components.NAME.features] phrase_attr = {value!r} is not supported. Use {known}."
    SC134 = (
        "{path}, named in [components.NAME.features] {setting} {name!r}, cannot be read: {reason}. "
        "Give the path of a text file."
    )
    SC135 = (
        "Line {line} of {path}, named in [components.NAME.features] {setting} {name!r}, is "
        "malformed: {reason}. Correct it."
    )
    SC136 = "[components.NAME.features] {setting} {name!r} is empty. Fill or remove it."
    SC137 = (
        "The saved feature data does not match [components.NAME.features]: {reason}. Restore "
        "`cfg` and config.cfg from the same saved pipeline, or retrain it."
    )
    SC139 = (
        "[components.NAME.features] templates read {n} attributes at each token up to template "
        "{number}, {template!r}. The limit is {most}. Choose shorter families, fewer templates, or "
        "attributes with fewer values."
    )
    SC140 = (
        '[components.NAME.features] clusters: {value!r} is not valid. Write {{"path": FILE, '
        '"format": "brown" or "word2vec"}} or {{"lookups": TABLE, "lang": CODE}}, each also with '
        '"prune": true.'
    )
    SC145 = (
        "[components.NAME.features.clusters] {name!r}: language {lang!r} has no table {table!r} of "
        f"lookups. {_install('clusters')}, for lexeme_cluster of de, en and es and lexeme_prob of "
        "de, el, en and es, or give the words as a file."
    )
    SC146 = (
        "[components.NAME.features.clusters] {name!r}: the table {table!r} of lookups does not map "
        "words to non-negative integers, or to log-probabilities. Name a table of word classes."
    )
    SC147 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, reads bits of "
        'the word classes {name!r}, numbers without bits. Write cluster("{name}"), or '
        "@classes({name}) for the whole set."
    )
    SC148 = "The file `clusters` of a component is damaged: {reason}. Restore it, or retrain."
    SC150 = "[components.NAME.features] boundaries = {value!r}: set an integer from 0."
    SC151 = (
        "{source}, line {line}: {text!r} is malformed at character {position}: expected "
        "{expected}; found {found}. Correct the line."
    )
    SC152 = (
        "{source}, line {line}: {text!r} reads column {column}, but [components.NAME.features] "
        "columns names {n}, which are columns 0 to {last}. Name all columns that patterns read."
    )
    SC153 = "{source} has no patterns. Give a pattern file of {program}."
    SC154 = (
        "{source}, line {line}: {text!r} has a malformed regular expression, {expression!r}, "
        "after character {position}: {reason}. Correct it."
    )
    SC155 = "[components.NAME.features] needs either path or text. Set one of the two."
    SC156 = (
        f"{{source}} has regular expressions, which need the package `regex`. {_install('regex')}."
    )
    SC157 = (
        "[components.NAME.features] columns = {value!r} is not a list of attributes. Name the "
        'attribute of each column that patterns read, from column 0, such as ["orth", "tag"].'
    )
    SC158 = (
        "[components.NAME.features] columns: column {number}, {column!r}, is not an attribute of "
        'tokens: {reason} Use an attribute such as "orth" or "tag".'
    )
    SC159 = "Pattern file {path} cannot be read: {reason}. Change [components.NAME.features] path."
    SC161 = (
        "The regular expression {expression!r} of a pattern took more than {seconds} s to "
        "search the text {text!r}: it backtracks too much. Rewrite it with fewer repetitions."
    )

    # SC2xx: the component, its parts and its training loop
    SC201 = "Component '{name}' has no labels. Train it, or load a trained pipeline."
    SC202 = "'{name}' was not initialized in this process. Call nlp.initialize, or load a pipeline."
    SC203 = (
        "Component '{name}' has no training data: none of {n_tokens} tokens has an aligned gold "
        "annotation for [components.{name}.target]. {remedy} Otherwise check the attribute, and "
        "the spaces between the words of the corpus."
    )
    SC204 = (
        "[training] max_epochs = -1 streams the corpus, but component '{name}' needs all of it. "
        "Set [training] max_epochs = 0 and stop by patience or max_steps."
    )
    SC205 = "[{block}] {key} = {value!r} is not valid. Set it to {expected}."
    SC206 = (
        "Gold label {label!r} is not in [initialize.components.{name}.labels] of component "
        "'{name}': {known}. Add it there, or run `spacy init labels`. The text begins: {text!r}."
    )
    SC207 = (
        "{key} = {path} has no weights for component '{name}'. Give a saved pipeline with it, the "
        "directory of a component, or its file `model`. Looked for: {tried}."
    )
    SC208 = (
        "[initialize.components.{name}] init_weights has labels that are missing from "
        "[initialize.components.{name}.labels]: {labels}. Add them there, or remove that setting."
    )
    SC209 = (
        "The objective of component '{name}' became {objective}. Raise [components.{name}] l1 or "
        "l2, or choose another [components.{name}.solver]."
    )
    SC210 = "{source} has format {found}, later than {known}. Run pip install -U spacy-sparsecrf."
    SC211 = (
        "{source} and the file `{part}` do not fit: they were not saved together, or one was "
        "damaged or changed. Restore all files of the component from the same saved pipeline."
    )
    SC212 = "{label!r} cannot be a label of component '{name}'. Use a non-empty string."
    SC213 = "Component '{name}' cannot have {n} outputs: it has {n_labels} labels. Use add_label."
    SC214 = "[components.NAME.target] attr = {attr!r} cannot be predicted. Choose one of: {known}."
    SC215 = (
        "{label!r} cannot be written to token.pos: it is not a universal part of speech. Choose "
        'one of: {known}; or write it as a tag, [components.NAME.target] attr = "tag".'
    )
    SC216 = "Call nlp.initialize(lambda: examples) with Example objects for '{name}', not {got}."
    SC217 = "Component '{name}' got no examples. Check the path of [training] train_corpus."
    SC218 = "The training corpus has no examples. Check the path of [training] train_corpus."
    SC219 = (
        "{source} cannot be read: {reason}. It was damaged, or changed by hand: restore all files "
        "of the component from the same saved pipeline, or retrain it."
    )
    SC220 = (
        "AnnotatedCorpus.v1 does not support the annotation {name!r}. Set [corpora.NAME] "
        "annotations to a list of {known}, ents, spans, spans(key) or _.name."
    )
    SC221 = (
        "[corpora.NAME] annotations: _.{name} is not registered. Call "
        'Token.set_extension("{name}", default=None) in a file given to `spacy train --code`.'
    )
    SC222 = (
        "{name} has {n} labels, whose pairs need about {needed} of {available} memory{that}. "
        "Use fewer labels, or more memory."
    )
    SC224 = (
        "Out of memory in component '{name}'. Set [components.{name}.learning] precision = "
        '"float32", or a larger l1. Saved files are unchanged.'
    )
    SC225 = (
        "Component '{name}' was trained with templates that differ from "
        "[components.{name}.features]. Restore its config.cfg, or retrain it."
    )
    SC226 = (
        "The target of component '{name}' returned {n} labels for a Doc of {n_tokens} tokens "
        "('{text}'). Let its method gold return one label for each token of example.predicted."
    )
    SC227 = "Features of '{name}' have {n} rows for Docs of {n_tokens} tokens. Correct them."
    SC228 = "[corpora.train] or [corpora.dev] path is null: give --paths.train and --paths.dev."
    SC229 = (
        "[corpora.NAME] path = '{path}' (--paths.train or --paths.dev) does not exist in {folder}: "
        "correct it. {nearest}Give a .spacy file or a directory of them."
    )

    # SC3xx: corpora, losses, solvers, learning, model files, graphs
    SC301 = "{n} features are above 2147483647. Use fewer [components.NAME.features] templates."
    SC302 = "The corpus has no sequences. Check the path of [training] train_corpus."
    SC303 = "[components.NAME] {key} = {value} is not a finite number >= 0. Change it."
    SC304 = "[components.NAME] n_threads = {value} is negative. Set 0 for one per core."
    SC305 = "No token of the training corpus has a gold label. Check [components.NAME.target]."
    SC306 = "[components.NAME.solver] {key} = {value} is too low. Set it to at least {low}."
    SC307 = "[initialize.components.NAME] init_weights: the objective is not finite. Check them."
    SC308 = (
        "Solver {solver} does not support an L1 penalty. Set [components.{name}] l1 = 0, or choose "
        "another [components.{name}.solver], such as spacy_sparsecrf.OWLQN.v1."
    )
    SC309 = (
        "Solver {solver} needs an L2 penalty. Set [components.{name}] l2 > 0, or choose another "
        "[components.{name}.solver], such as spacy_sparsecrf.OWLQN.v1."
    )
    SC310 = "[components.NAME.learning] dtype = {value!r}: use 'float32' or 'float64'."
    SC311 = "{n} labels: over {most}, or repeated. Correct [initialize.components.NAME.labels]."
    SC312 = "This is not a spacy-sparsecrf model, or it is truncated. Copy it again, or retrain it."
    SC313 = "The model has format {found}, later than {known}. Run pip install -U spacy-sparsecrf."
    SC314 = "The model file is damaged ({reason}). Copy it again, or retrain it."
    SC316 = (
        "The checkpoint {path} is of another run: corpus, labels, solver, penalty or problem "
        "differ. Restore these, or remove the file."
    )
    SC317 = "Names of labels take {size} bytes, above {most}. Give the labels shorter names."
    SC318 = "Checkpoint {path} is damaged ({reason}). Copy it again, or remove it to start over."
    SC319 = "{file} cannot be written: {reason}. {folder} was left unchanged. Change {setting}."
    SC320 = (
        "Training would need about {needed} of {available} memory for all {n_potential} weights of "
        "{n_features} features and {n_labels} labels. Set [components.NAME] l1 > 0, or "
        "[components.NAME.learning] observed_only = true ({n_observed} weights) or min_freq > 1."
    )
    SC321 = (
        "Training would need about {needed} of {available} memory: {n_features} features, "
        "{n_labels} labels, {n_potential} potential and {n_observed} observed weights. Set "
        '[components.NAME.learning] precision = "float32" or min_freq, or remove templates.'
    )
    SC325 = "[components.NAME.solver] {key} = {value!r} is not supported. Choose one of: {known}."
    SC336 = (
        "Solver {solver} does not support a penalty ({second}). Set [components.{name}] l2 = 0, or "
        "choose another [components.{name}.solver], such as spacy_sparsecrf.SGD.v1."
    )
    SC337 = "Solver {solver} needs sequences with gold labels at all tokens. Annotate some."
    SC338 = "Weights of solver {solver} grow without bounds. Lower [components.NAME.solver] eta0."
    SC340 = (
        'Solver {solver} supports per-position models only. Set [components.{name}] model = "memm" '
        'or "maxent", or choose another [components.{name}.solver], such as NewtonCG.v1.'
    )
    SC342 = "[components.NAME] model = {value!r} is not supported. Choose one of: {known}."
    SC343 = (
        "Clusters of labels need a model without transitions, not [components.{name}] {second}. "
        'Set model = "maxent", or [components.{name}.learning] clusters = 0.'
    )
    SC344 = (
        "{n_labels} labels cannot be put in {value} clusters (at most as many as labels, and "
        "{most} labels). Change [components.NAME.learning] clusters."
    )
    SC351 = (
        "With [components.NAME.learning] min_freq = {min_freq} no observation feature is left: "
        "none occurs at so many of the {n_tokens} training tokens. Lower it."
    )
    SC353 = "[components.{name}.learning] label_weights: no label is {unknown}. Use {known}."
    SC354 = (
        "[components.{name}.learning] doc_weight = {attribute!r} is not registered. Call "
        "Doc.set_extension({attribute!r}, default=1.0) in a file given to `spacy train --code`."
    )
    SC355 = (
        "doc._.{attribute}, which [components.{name}.learning] doc_weight names, is {value!r} in a "
        "training Doc, but must be a finite number >= 0. Correct it. The text begins: {text!r}."
    )
    SC356 = "All sequences weigh 0. Change [components.NAME.learning] doc_weight or label_weights."
    SC357 = (
        "[components.{name}.learning] constrained = true needs a model of whole sequences, not "
        '[components.{name}] {second}. Set model = "chain", or constrained = false: predictions '
        "are valid in any case."
    )
    SC358 = (
        "[components.NAME.learning] constrained = true: {problem}: token {number} (from 0) of "
        "{place}. Correct the annotation, or [components.NAME.decoding] forbidden and allowed."
    )
    SC359 = (
        "Solver {solver} does not support constrained training. Set [components.{name}.learning] "
        "constrained = false, or choose another [components.{name}.solver]."
    )
    SC360 = (
        "{second} may have several gold labels, which clusters do not support. Set "
        "[components.{name}.learning] clusters = 0."
    )
    SC366 = (
        'Solver {solver} does not support [components.{name}.learning] prior. Set it to "", or '
        "choose another [components.{name}.solver]."
    )
    SC367 = "[components.{name}.learning] prior cannot be combined with {first}. Remove one."
    SC368 = "[components.NAME.learning] prior has no feature of the corpus. Use its templates."
    SC370 = "Graph {graph}: numbers or sizes do not fit. Correct the arguments of GraphBuilder.add."
    SC371 = "Edge {edge} of graph {graph} joins the nodes {nodes}. Number its nodes from 0."
    SC372 = "Edge {edge} of graph {graph} joins a node with itself: {nodes}. Remove it."
    SC373 = "Inference of graphs: {key} = {value!r} is not valid. Set it to {expected}."
    SC374 = "Label {label} of a node is not from 0 to {n} - 1. Correct it, or give more labels."
    SC375 = "Pseudo-likelihood: {n} graphs have nodes without labels. Annotate them, or set method."
    SC376 = (
        "Mean field: the loss is {value:.6g}. No negative log-likelihood is below 0; this bound of "
        "it has no minimum here. Set method = 'lbp', or a larger l2."
    )
    SC384 = (
        "nlp.update of a loaded pipeline, or after nlp.initialize without examples, does not "
        "support [components.{name}.learning] {first}. Set it to its default; or call "
        "nlp.initialize with examples, for a loaded pipeline with its path as the setting prior of "
        "that block."
    )
    SC385 = (
        "Gold label {label!r} of a batch is not among the labels of component '{name}', which "
        "learns without a corpus: {known}. Call add_label before nlp.update, or train again with "
        "the saved pipeline as [components.{name}.learning] prior. The text begins: {text!r}."
    )
    SC390 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, reads a number, "
        "{read}. Write u:{read}[OFFSET], or vector(2) for bins of a vector."
    )
    SC391 = (
        "[components.NAME.features] templates read {read}, but token._.{name} is a {kind} at the "
        "token {text!r}. Set it to a number, true or false, or None for 0."
    )
    SC392 = (
        "[components.NAME.features] templates read {read}, but token._.{name} is {value!r} at the "
        "token {text!r} of the Doc that begins {doc!r}, which is not a finite 32-bit number. "
        "Correct it, or set it to None for 0."
    )
    SC393 = (
        "Solver {solver} cannot learn from real values. Choose another [components.{name}.solver]:"
        " OWLQN.v1, RPROP.v1, NewtonCG.v1 or Perceptron.v1; or read vectors in bins: vector(2)."
    )
    SC394 = (
        "A model with clusters of labels, [components.{name}.learning] {first}, does not support "
        "real-valued features ([components.{name}.features] templates with vector or value(...)). "
        "Set clusters = 0, or read vectors in bins, as in vector(2)."
    )
    SC395 = (
        "Solver {solver} needs one gold label for each token: {second} lack that. "
        "Annotate them, or choose another [components.{name}.solver], such as SAG.v1."
    )

    # SC4xx: decoding, first-stage models
    SC401 = "[{block}] has no setting {key!r}: remove it. {nearest}It has: {known}."
    SC402 = (
        "[components.{name}.decoding] outside_weight = {first} does not work with {second}. Set "
        'outside_weight = 0.0, or method = "viterbi".'
    )
    SC403 = (
        "[components.NAME.decoding] {key} names {label!r}, which is not a label of the component. "
        'Use one of: {known}; or "" for the boundary of a sequence.'
    )
    SC404 = (
        "[components.NAME.decoding] forbidden and allowed exclude too many transitions: {problem}. "
        'Remove pairs from `forbidden`, or add some to `allowed`: ["", label] begins a sequence, '
        '[label, ""] ends it.'
    )
    SC405 = (
        "The {what} have shape {shape} and type {dtype}, but must be an array {expected} of bool. "
        "Correct the method `{method}` of the target ([components.NAME.target])."
    )
    SC406 = "There are {n_labels} labels for {n_tokens} tokens. Give one for each token, in order."
    SC407 = "n = {n!r} is not a number of paths. Give an integer that is at least 1."
    SC408 = "Span {number}, {length} tokens from {start}, exceeds {n_tokens} tokens. Correct it."
    SC409 = "{label!r} is not a label of component '{name}'. Use one of: {known}."
    SC411 = (
        "[components.{name}.learning.stack] folds: no template reads the first stage. Add some to "
        '[components.{name}.features], such as "u:first[0]", or set folds = 0 there.'
    )
    SC414 = "[components.{name}.learning.stack] folds = {folds}, but there are {n} Docs. Lower it."
    SC415 = (
        "Component '{name}' has a first-stage model either in its model file or in "
        "[components.{name}.learning] stack. Restore both from the same pipeline."
    )
    SC416 = (
        "The templates of component '{name}' read {first}, predictions of a first-stage model, but "
        "there is none. Set [components.{name}.learning.stack] folds = 5, or remove them."
    )
    SC417 = "[components.{name}.decoding] thresholds: no type is {unknown}. Choose from: {known}."
    SC418 = (
        "{source} of component '{name}' was trained with scheme = {trained!r}, not "
        "[components.{name}.target] scheme = {given!r}. Set scheme to {trained!r}."
    )
    SC419 = "{where}: {name!r} is no label or type: correct it. {nearest}Choose from: {known}."
    SC420 = '[components.NAME.target] types = {value!r}: set a list such as ["PER"], or [] for all.'
    SC430 = "'{name}' needs a Doc for probabilities, but got {found}. Give one, such as nlp(text)."

    # SC5xx: targets
    SC501 = "[components.NAME.target] scheme = {value!r}: change it to one of: {known}."
    SC502 = (
        "Two gold spans of doc.spans[{key!r}] overlap at {span!r}. Remove one, or train a "
        "component for each set of [components.NAME.target] types. The text begins: {text!r}."
    )
    SC503 = "The gold entities of a Doc are damaged: {reason} Set them again. It begins: {text!r}."
    SC504 = (
        "[components.{name}] {first} needs entities, spans or an outside label, but "
        "[components.{name}.target] has none. Name the label of most tokens there, as in outside = "
        '"NONE", use sparse_crf_ner or sparse_crf_spans, or set the default.'
    )
    SC505 = "{label!r} is no label of scheme {scheme}: {known}. Give types of spans to add_label."
    SC506 = (
        "[components.NAME.target] attr = {attr!r} cannot be written. Register an extension "
        'attribute, and write attr = "_.name".'
    )
    SC507 = (
        "The gold value {value!r} of token.{attr} is not a string. Use strings in the training "
        "Docs, and None or an empty string for no label. The text begins: {text!r}."
    )
    SC508 = '[components.NAME.target] key is empty. Name the group of doc.spans, such as "sc".'
    SC509 = "Component '{name}' learns labels of tokens, not of spans. Call span_probabilities."
    SC510 = (
        "Label ids do not fit: one is not below {n}, the number of labels, or tokens have no id. "
        "Give set_annotations what predict returned for the same Docs."
    )
    SC511 = (
        "[components.{name}.features] templates read {first}, which needs entities or spans, but "
        "[components.{name}.target] has none. Read doc_majority, or use sparse_crf_ner or "
        "sparse_crf_spans."
    )

    # SC6xx: commands: explaining, patching, converting, importing, analysing
    SC601 = "{model} has no component{named} with sparse CRF weights, but [{pipes}]. {remedy}"
    SC602 = "{model} has {n} components with sparse CRF weights. Choose by --component: {known}."
    SC603 = (
        "{path}, line {line}, is not a weight: {reason}. Write it as `python -m spacy_sparsecrf "
        "dump` does, separated by tabs."
    )
    SC607 = "There is no {kind} {name!r}: correct it. {nearest}Choose one of: {known}."
    SC608 = "{path} exists. Add --force to overwrite it, or write to another place."
    SC610 = "{path}, line {line}, is not UTF-8: {reason}. Run `iconv {path} -t utf-8 -f {encoding}."
    SC611 = (
        "{path}, line {line}, has {found} columns, but {expected} are expected ({why}): {text!r}. "
        "Separate columns by {by}, and sentences by an empty line, or name another --format; "
        + RECIPE
        + "."
    )
    SC612 = "{path} has no tokens to read. {remedy}."
    SC614 = "Change --{option} {value}, which cannot be used: {reason}."
    SC615 = (
        "{path}, line {line}: {value!r} is not a valid label here ({reason}). Labels are read as "
        "{scheme}. {remedy}."
    )
    SC616 = (
        "{path}, line {line}: {value!r} cannot be a value of {column} ({reason}). Correct it, or "
        "change --columns."
    )
    SC618 = "{path} cannot be decompressed ({reason}). Copy or compress it again."
    SC619 = (
        "Token {token} of Doc {doc} of {path} cannot be written to column {column}: {value!r} "
        "{reason}. Change the token or --columns."
    )
    SC620 = "One of {source} and {target} must be a .spacy file, the other a text file. Rename one."
    SC621 = "{path} is not a readable .spacy file: {reason}. Copy or write it again."
    SC624 = "{path} cannot be read: {reason}. Correct it, or give another --format; " + RECIPE + "."
    SC625 = (
        "No record of {path} has annotation, such as {first}{keys}. Rename its key, or "
        "add --unannotated outside if annotators looked and found nothing; " + RECIPE + "."
    )
    SC626 = (
        "In {path}, {n} {what}, such as {shown}. Tried: other languages, offsets from 1, ends that "
        "are the last character, UTF-16 or byte offsets. {causes}. Correct them, or go on by "
        "--misfit expand (to whole tokens) or --misfit drop."
    )
    SC630 = "{path} is no model of Wapiti, CRF++ (as text) or CRFsuite. Give such a file."
    SC631 = "{path} is damaged, or was not written by {program}: {reason}. Copy or train it again."
    SC636 = (
        "{path}, line {line}, may be a {what} or a token: {text!r}. Remove it if it is a {what}; "
        "if it is a token, {option}."
    )
    SC637 = (
        "The columns of {path} are not known: {reason} (line {line}: {text!r}). Give {options}, or "
        "another format by --format; " + RECIPE + "."
    )
    SC638 = "'{name}' cannot be exported as a portable model: {reason}. {remedy}."
    SC639 = (
        "The exported model differs from the pipeline, so nothing was written. Text: {text!r}\n"
        "pipeline: {expected}\nportable: {actual}\nReport the text, or export to another format."
    )
    SC640 = "No token has a gold label of '{name}'. Give Docs for [components.{name}.target]."
    SC641 = "[{block}] has no path for {data}. Choose a reader that has one: AnnotatedCorpus.v1."
    SC642 = (
        "{path} lacks the words of {n} tokens: their texts repeat one character, such as _. Run "
        "the script that adds the words, which the README of the treebank or corpus names (such as "
        "merge.py or get_text.py), and convert its output."
    )
    SC654 = "{data} has no Docs. Give a .spacy file or a directory of them."
    SC644 = (
        "Component '{name}' cannot be calibrated for --precision {precision}, --best-f {beta} and "
        "--outside {outside}. Give a precision between 0 and 1, or a beta above 0; for labels of "
        "tokens, name one in [components.{name}.target] outside before."
    )
    SC661 = "The config is not valid, correct it. {reason}"
    SC662 = (
        "[components.{name}.{key}] is {found}, not of the type of {key}. Write it as a block:\n"
        '[components.{name}.{key}]\n@{registry} = "{example}"'
    )
    SC663 = "{key} = {name!r} is unknown: correct it. {nearest}Use one of: {known}."
    SC671 = (
        "{path}: {n} records have annotation, and {gaps} have none, or null (first: {first}). Add "
        "--unannotated outside if annotators found nothing there, missing if nobody looked, or "
        "skip to leave them out."
    )
    SC672 = "{path} cannot be used: {reason}. {nearest}Correct the path."
    SC673 = (
        "{path} {what}, which is not read as it is. {remedy}. "
        f"See {DOCUMENTATION}/entities/#read-any-other-format."
    )
    SC674 = (
        "Teacher {teacher} fails at text {number}, {text!r}: {reason}. Correct it, and run the "
        "same command again, which resumes here; or add --skip-bad to leave out such texts."
    )
    SC675 = "Teacher {teacher!r} cannot be used: {reason}. Give a pipeline, or MODULE:NAME."
    SC676 = "{path} has answers of teacher {other!r}, not of {teacher!r}. Remove it, or rename OUT."

    # SC7xx: the search for hyperparameters
    SC701 = (
        "`tune` does not support solver {solver}: it is approximate, or has no L1 penalty. Change "
        "[components.NAME.solver], for example to spacy_sparsecrf.OWLQN.v1."
    )
    SC705 = "The objective became {objective} at l1 = {l1:g}. Raise [components.NAME] l2."
    SC706 = (
        "`tune` needs a sparse CRF as the only pipe to train, but the pipeline {pipeline} trains: "
        "{names}. Keep one; source others, or freeze them ([training] frozen_components)."
    )
    SC709 = "[training.score_weights] names {weights}. Name one of the scores: {known}."
    SC717 = "[training] {key} = {block!r}: no path. Give --paths.train and --paths.dev, or --folds."

    # SC8xx: the estimator
    SC801 = (
        "{place} cannot be read ({reason}). Give X as a list of sequences of tokens, and a token "
        "as a dict of strings, numbers, booleans or lists, sets and dicts of these, or as strings."
    )
    SC802 = "{x} has length {n}, but {y} has {found}. Give one of {y} for each of {x}."
    SC804 = (
        "y[{number}][{token}] is {label!r}, which is not a label. Give non-empty strings, or None."
    )
    SC805 = "{name} is not fitted. Call fit(X, y) first."
    SC808 = (
        "{n_values} features have numbers other than 0 and 1, which need {needed} MB for "
        "{n_tokens} tokens; {available} MB are available. Give numbers in bins, as strings."
    )
    SC809 = "{name} = {value!r} is not valid ({reason}). Change it."
    SC810 = (
        "{n} features with weights cannot be written as templates: {shown}. Name them with "
        '`features` (--features), as in {{"word.lower()": "lower[0]"}}, or fit without them.'
    )
    SC811 = "{first!r} and {second!r} are both the feature {name}. Name another for one of them."
    SC817 = f"{{what}} needs {{package}}, which is not installed. {_install('{extra}')}."

    SC819 = "Label {label!r} at position {position}: it is not among the {place}. Correct it."

    SC820 = "Numbers cannot become features: {names}. Give them in bins, as strings."

    SC821 = "{name!r} has a zero byte, which ends names in CRFsuite's files. Leave it out."
    SC822 = (
        "CRFsuite has no weights of {n} features with pairs of labels: {names}. Train without "
        "`bigrams`, or export to Wapiti or CRF++."
    )
    SC823 = "This tagger has no model. Call `open(path)` first."

    # SC9xx: clusters
    SC900 = (
        "[initialize.components.{name}] shards: there is no .spacy file {pattern!r}. Correct the "
        "path, which is relative to the directory that the command runs in, or write the files."
    )
    SC901 = (
        "[initialize.components.{name}] shards reads files as [training] train_corpus is read, but "
        "that names no block of [corpora] with a path. Set one, such as spacy.Corpus.v1."
    )
    SC904 = "[components.NAME.engine] {key} = {value} is not valid. Set it to an integer >= {low}."
    SC905 = "Engine Ray.v1 needs Ray. Run `pip install 'spacy-sparsecrf[ray]'` on each machine."
    SC906 = (
        "Component '{name}' cannot learn from a partitioned corpus with {first}. Set it to its "
        "default (of solvers: OWLQN.v1 or RPROP.v1), or do not partition "
        "the corpus: remove [initialize.components.{name}] shards, and set "
        '[components.{name}.engine] @crf_engines = "spacy_sparsecrf.Threads.v1".'
    )
    SC907 = (
        "Workers were lost {n} times, the last time because: {reason} Find the cause, or raise "
        "[components.NAME.engine] max_restarts. A checkpoint resumes training."
    )
    SC908 = (
        "The Ray cluster failed: {reason} Run the same command again: it resumes training from its "
        "last step if [initialize.components.NAME] checkpoint is set."
    )
    SC909 = (
        "[components.NAME.engine] address = {address!r}: no Ray cluster can be reached or started "
        "there: {reason} Start one with `ray start --head`, or set address = null for a local one."
    )
    SC910 = (
        "The Ray cluster has no free cores for [components.NAME.engine] num_workers = "
        "{num_workers} with cpus_per_worker = {cpus_per_worker}. Change these, or wait."
    )


def unknown_setting(block: str, key: str, names: Iterable[str]) -> SparseCRFError:
    """Return an error about a setting that a block of a config does not have."""
    known = [*names]
    values = {"block": block, "key": key, "nearest": nearest(key, known)}
    return SparseCRFError(Errors.SC401.format(**values, known=", ".join(known) or "none"))


def refused_option(option: str, value: object, reason: str) -> SparseCRFError:
    """Return an error about the value of an option of a command."""
    values = {"option": option.replace("_", "-"), "value": repr(value), "reason": reason}
    return SparseCRFError(Errors.SC614.format(**values))


class Warnings(metaclass=_Coded):
    """Messages of warnings; the areas are those of `Errors`."""

    SCW201 = (
        "Component '{name}': {n[missing]} of {n[tokens]} training tokens have no aligned gold "
        "annotation. If they should, check the tokenization and the spaces between words."
    )
    SCW202 = (
        "'{name}' was trained on sentences, but now gets Docs without boundaries. Let a sentencizer"
        " run in both ([training] annotating_components), or set its sequences = 'docs'."
    )
    SCW203 = (
        "Component '{name}' reads annotations of '{upstream}', which is trained in the same run. "
        "Train '{upstream}' first, then source it and add it to [training] frozen_components."
    )
    SCW204 = (
        "spacy-sparsecrf recompiles its kernels in each process, because it cannot write them, or "
        "does not know this numba. Set NUMBA_CACHE_DIR to a writable directory, or run `python -m "
        "spacy_sparsecrf warmup` once where it can write."
    )
    SCW205 = (
        "Templates of component '{name}' read {attribute}, which none of the {n_tokens} training "
        "tokens has. Copy it by [corpora] annotations of AnnotatedCorpus.v1, name the pipe that "
        "sets it in [training] annotating_components, or remove it from "
        "[components.{name}.features]."
    )
    SCW206 = (
        "Templates of component '{name}' read {attribute}, which none of these {n_tokens} tokens "
        "has, but {share:.1%} of the training tokens had. Put the pipe that sets it before "
        "'{name}', or give Docs that have it; `python -m spacy_sparsecrf errors` evaluates with "
        "gold annotation."
    )
    SCW207 = (
        "Component '{name}' learns only from the {n} examples that it was initialized with. An "
        "update got none of them: the first begins {text!r}. Give all training examples to "
        "nlp.initialize(lambda: examples); or call nlp.initialize without examples, to learn from "
        "those of each nlp.update."
    )
    SCW208 = (
        "Component '{name}': {n[lost]} of {n[gold]} gold labels ({share:.1%}) are lost, because "
        "predicted and gold tokens differ: first that of {word!r} in the Doc that begins {text!r}. "
        "Check [nlp.tokenizer] and the spaces between words, or set gold_preproc = true in "
        "[corpora.train]."
    )
    SCW209 = (
        "Component '{name}' passes over the whole corpus in each step, but is evaluated every {n} "
        "steps. Set, as `python -m spacy_sparsecrf config` does:\n[training]\neval_frequency = 1\n"
        "patience = 5"
    )
    SCW210 = (
        "Compiled kernels in {directories} are not used: the path is relative, or others may write "
        "there or above it. Run chmod go-w, or set NUMBA_CACHE_DIR to an absolute path of your own."
    )
    SCW211 = (
        "{n} active features have no names, so word classes with prune = true are saved whole. Set "
        "store_feature_names = true in [components.NAME] and retrain to prune them."
    )
    SCW212 = (
        "Component '{name}' learns without a corpus from one example: updates of single Docs lower "
        "the accuracy. Give nlp.update more, learn from the whole corpus with the pipeline as "
        "[components.{name}.learning] prior, or freeze it."
    )
    SCW214 = (
        "Component '{name}' is in a pipeline of the language {lang!r}, but gets Docs of {own!r}. "
        "Write the config with `python -m spacy_sparsecrf config NAME --lang {own}`, or set [nlp] "
        'lang = "{own}". The first such Doc begins {text!r}.'
    )
    SCW215 = (
        "Templates of '{name}' read {attribute}, which only {share:.1%} of the {n_tokens} training"
        " tokens have. Complete it, or remove it from [components.{name}.features]."
    )
    SCW216 = (
        "Component '{name}' gets {n} training Docs without any entity or span that its target "
        "([components.{name}.target]) reads: it will never predict one. {remedy}"
    )
    SCW217 = (
        "Component '{name}' is evaluated on {what}, so its score is 0 in each evaluation, and"
        " training stops by patience. Check --paths.dev ([training] dev_corpus)."
    )
    SCW218 = (
        "Component '{name}' has no weights: with l1 = {l1} all are zero. Lower [components.{name}] "
        "l1, such as to 0.1; `python -m spacy_sparsecrf tune` shows scores by l1."
    )
    SCW219 = (
        "Templates of component '{name}' read {attribute}, which the pipe '{upstream}' sets in "
        "prediction only. Add '{upstream}' to [training] annotating_components."
    )
    SCW220 = (
        "Component '{name}' learns from gold tokens that differ from those of the tokenizer: "
        "{cuts.n_others} of {cuts.n_tokens}, most often {cuts.examples}. Choose the language ([nlp]"
        " lang) or another [nlp.tokenizer]; `python -m spacy_sparsecrf debug` counts all."
    )
    SCW221 = (
        "Spans of {path} cross the ends of sentences. Columns have one span for each sentence, so "
        "these are written as several. Correct the sentences or the spans if they are one."
    )
    SCW222 = (
        "The templates of {path} ({key}) differ from [components.{name}.features] templates: only "
        "weights of features that both have are used. Copy its templates to use all weights."
    )
    SCW223 = (
        "Component '{name}': {n[cut]} gold entities or spans cross the start of a sentence or a "
        "blank line and cannot be predicted: first in the Doc that begins {text!r}. Choose another "
        'pipe for sentences, or set [components.{name}] sequences = "docs".'
    )
    SCW224 = (
        "None of the {n[examples]} training Docs of component '{name}' has a weight "
        "([components.{name}.learning] doc_weight). Use DocBin(store_user_data=True), or remove it."
    )
    SCW225 = (
        "Development Docs of '{name}' have its gold annotation before prediction: scores are too "
        "high. Remove it from [corpora] annotations, or set [components.{name}] overwrite = true."
    )
    SCW226 = "No template reads {names} of [components.NAME.features] phrases or clusters. Add one."
    SCW227 = (
        "{n[unset]} of {n[used]} training Docs of component '{name}' have no doc.spans[{key!r}], "
        "so that it does not learn from them. Set doc.spans[{key!r}] = [] where there are no spans."
    )
    SCW228 = (
        "The target of component '{name}' does not name what it learns, so its score is not tag_acc"
        " of [training.score_weights]. Return {{'token_attr': 'tag'}} in its method `scoring`, or "
        "name a scorer in [components.{name}.scorer], and its score."
    )
    SCW229 = (
        "Component '{name}' resumes from {path}. spaCy's log begins again, and its first row would "
        "overwrite model-best of the interrupted run: give `spacy train` another --output."
    )
    SCW230 = (
        "Component '{name}' learns {attr}, but [training.score_weights] names only {unfit}, which "
        "stays 0. Add to the config:\n[training.score_weights]\n{own} = 1.0\n{unfit} = null"
    )
    SCW231 = (
        "[training.batcher] {batcher} gives one example of an epoch to {others} too. To train "
        'them, set @batchers = "spacy.batch_by_sequence.v1" and size = 32 there.'
    )
    SCW233 = (
        "Component '{name}': {n[trimmed]} gold entities or spans begin or end with white space, "
        "such as {text!r}, and are learnt without it. Remove it there, so that scores agree."
    )
    SCW236 = (
        "Component '{name}' is saved without weights: all tokens get the same label. It was not "
        "trained after nlp.initialize, or l1 = {l1} removed all weights. Train it, or lower "
        "[components.{name}] l1."
    )
    SCW237 = "Kernels of {path} are compiled again: {reason}. If this recurs, check the disk."
    SCW238 = (
        "Component '{name}': the tags of {n[typed]} of {n[used]} training Docs are labels of "
        "entities, such as {label}. To learn entities, convert the file by --columns orth,ner, "
        "and use `python -m spacy_sparsecrf config ner`."
    )
    SCW239 = (
        "Component '{name}' is evaluated on labels that training lacks, so that it never predicts "
        "them: {unseen}. Correct them, or add training Docs with them."
    )
    SCW240 = (
        "max_length = {value} of AnnotatedCorpus.v1 has no effect: components learn from whole "
        "Docs, of which {n} of {n_docs} are as long. Set max_length = 0."
    )
    SCW241 = (
        "[training] {corpus} leaves out, or cuts, Docs of {value} tokens or more (max_length = "
        "{value}). Component '{name}' needs no limit: set max_length = 0."
    )
    SCW251 = "Component '{name}': {text}."
    SCW252 = (
        "Component '{name}': in no training Doc did annotators look for all spans of {types}, so "
        "that no token is known to be outside of them, and false ones follow. Name these types in "
        "--annotated of `convert` for a file in which all of them are annotated."
    )
    SCW340 = (
        '[components.NAME] model = "maxent" leaves out the {n} features of pairs of labels. Write '
        'u: for b: and *: in [components.NAME.features] templates, or set model = "chain".'
    )
    SCW341 = (
        "The warm start ends at an objective of {objective:.6g}, above {zero:.6g} of zero weights, "
        "with which training begins instead. Set [components.NAME.learning.warm_start] epochs = 0, "
        "or divide very long Docs."
    )
    SCW342 = "{name} = {value!r} of the solver has no effect: {reason}. Leave it out."
    SCW350 = (
        "[components.{name}.learning] constrained = true has no effect: all label sequences are "
        "valid. Set [components.{name}.decoding] forbidden or allowed, or remove it."
    )
    SCW370 = (
        "The inference of {n} of {of} graphs has not converged after {limit} iterations (largest "
        "change {change:.2g}). Raise damping (such as 0.5) or limit."
    )
    SCW401 = (
        "The labels set in {n} sequences require an invalid transition and are kept. Correct the "
        "annotation of the Docs, or set [components.NAME] overwrite = true."
    )
    SCW402 = (
        "The annotation of {n} tokens is not a label of the component, and is ignored. Correct it, "
        "or set [components.NAME] overwrite = true."
    )
    SCW403 = (
        "A sequence of {n} tokens repeats {name!r}, a name of `once`: its annotation or the valid "
        "transitions leave no other labels. Correct the annotation, or remove the name."
    )
    SCW404 = (
        "A sequence of {n} tokens repeats {name!r}, a name of `once`: it has too many labels to "
        "track more than {most} names. Remove names from `once`, or cut the text."
    )
    SCW601 = "File `names` of a component cannot be read ({reason}). Copy it again to see names."
    SCW640 = "{data} is the training data of {model}. Calibrate on held-out data."
    SCW641 = (
        "Gold annotation has types that component '{name}' does not predict in these Docs, and "
        "that get no threshold: {types}. Train it on such annotation if it should predict them."
    )
    SCW802 = "{names}: no effect with the solver {solver}, which has no such setting. Remove it."
    SCW803 = (
        "algorithm = {value!r} is not implemented; the averaged perceptron is trained instead "
        "(algorithm = 'ap'). Set algorithm = 'ap', or 'lbfgs' for a model with probabilities."
    )
    SCW804 = "{value!r} of bigrams has no effect: no feature has this name. Correct it."
    SCW805 = "Features with numbers have no pairs of labels: {names}. Give them in bins."
    SCW806 = (
        "The kernels could not be loaded ({reason}), so labelling stays slow. Check the directory "
        "of compiled kernels."
    )
