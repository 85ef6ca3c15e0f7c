"""Every message of the package, coded, and its warning categories."""


class SparseCRFWarning(UserWarning):
    """Something in data or settings that most likely is not meant."""


class SparseCRFError(ValueError):
    """Base of the package's own exceptions; the message starts with its code."""


class _Coded(type):
    """Put the code in front of each message, as spaCy does: `[SC001] ...`."""

    def __getattribute__(cls, code: str) -> str:
        message: str = super().__getattribute__(code)
        return message if code.startswith("_") else f"[{code}] {message}"


class Errors(metaclass=_Coded):
    """Messages of errors: what was wrong, where, and what to do."""

    # SC1xx: features
    SC101 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, is malformed "
        "at character {position}: expected {expected}; found {found}."
    )
    SC102 = (
        "[components.NAME.features] templates = {value!r} is not a list of strings. Write it as "
        '["u:lower[0]", "b:"], or leave it out for the default.'
    )
    SC103 = (
        "[components.NAME.features] templates is empty. Name at least one, such as "
        '["u:lower[0]", "b:"], or leave it out for the default.'
    )
    SC104 = (
        "Template {second} of [components.NAME.features] templates, {second_text!r}, repeats "
        "template {first}, {first_text!r}: both test the same with {conjoined}. Remove one."
    )
    SC105 = (
        "sequences = {value!r} is not known. Change [components.NAME] sequences to one of: {known}."
    )
    SC110 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, has a regular "
        "expression, for which the package `regex` is needed and missing. Install it: "
        "pip install spacy-sparsecrf[regex]."
    )
    SC111 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, has a malformed "
        "regular expression: {reason}, at character {position} of the template."
    )
    SC112 = (
        "The regular expression of template {number} of [components.NAME.features] templates, "
        "{template!r}, took more than {seconds} s to search the word {text!r}: it tries very many "
        "ways to match. Rewrite it without repeating what matches in several ways, such as "
        "(a|aa)+, or with possessive quantifiers, such as a++."
    )
    SC120 = (
        "[components.NAME.features] templates read the extension attribute token._.{name}, which "
        "is not registered. Register it before the pipeline is used: "
        'spacy.tokens.Token.set_extension("{name}", default=None).'
    )
    SC121 = (
        "[components.NAME.features] templates read token._.{name}, which is a {kind} at the token "
        "{text!r}. They can read a string, an integer, a truth value, or None for no value."
    )
    SC125 = (
        "[components.NAME.features] templates read token.vector, but the pipeline has no vectors. "
        "Give it some ([initialize] vectors = path), put a tok2vec pipe before this one and name "
        "it in [training] annotating_components, or remove `vector` from the templates."
    )
    SC126 = (
        "[components.NAME.features] templates read vectors of {trained} dimensions in training, "
        "but now one of {found}. Load the pipeline with the vectors that it was trained with."
    )
    SC127 = (
        "[components.NAME.features] templates read token.vector, which is not finite at the token "
        "{text!r} of the Doc that begins {doc!r}. Repair or replace the vectors ([initialize] "
        "vectors)."
    )
    SC130 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, is {n} tests at "
        "each token: all combinations of the values that its attributes can have. At most {most} "
        "are possible. Conjoin fewer attributes with several values."
    )
    SC131 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, reads the "
        "phrases {name!r}, which are not in [components.NAME.features] phrases. Known: {known}."
    )
    SC132 = (
        "[components.NAME.features] phrases = {value!r} is not valid: it must map names to files "
        'or to lists of phrases, as {{"cities": "cities.txt", "titles": ["Dr.", "Prof."]}}.'
    )
    SC133 = (
        "[components.NAME.features] phrase_attr = {value!r} is not known. Change it to one of: "
        "{known}."
    )
    SC134 = (
        "The file {path}, named in [components.NAME.features] phrases {name!r}, cannot be read: "
        "{reason}. Give the path of a UTF-8 text file with one phrase a line."
    )
    SC135 = (
        "Line {line} of the file {path}, named in [components.NAME.features] phrases {name!r}, is "
        "not UTF-8. Convert the file to UTF-8."
    )
    SC136 = (
        "[components.NAME.features] phrases {name!r} has no phrases. Fill the list or the file, "
        "or remove it and the templates that read it."
    )
    SC137 = (
        "What was saved with the pipeline does not fit its [components.NAME.features]: "
        "{reason}. Restore `cfg` and config.cfg from one saved pipeline, or train it again."
    )
    SC150 = (
        "[components.NAME.features] boundaries = {value!r} is not valid: it must be a whole number "
        "from 0, how many distances from a sequence are told apart, or left out for all."
    )
    SC151 = (
        "{source}, line {line}: {text!r} is malformed at character {position}: expected "
        "{expected}; found {found}."
    )
    SC152 = (
        "{source}, line {line}: {text!r} reads column {column}, but [components.NAME.features] "
        "columns names {n}, which are columns 0 to {last}. Name all columns that patterns read."
    )
    SC153 = "{source} has no patterns: every line is empty or a comment. Give a file of {program}."
    SC154 = (
        "{source}, line {line}: {text!r} has a malformed regular expression, {expression!r}, "
        "behind character {position}: {reason}."
    )
    SC155 = (
        "[components.NAME.features] needs either path, a pattern file, or text, the patterns "
        "themselves, and not both."
    )
    SC156 = (
        "{source} has regular expressions, for which the package `regex` is needed and missing. "
        "Install it: pip install spacy-sparsecrf[regex]."
    )
    SC157 = (
        "[components.NAME.features] columns = {value!r} is not a list of attributes. Write, for "
        'instance, ["orth", "tag"]: what the columns that patterns read are, from column 0.'
    )
    SC158 = (
        "[components.NAME.features] columns: column {number}, {column!r}, is not an attribute of "
        'tokens, such as "orth" or "tag": {reason}'
    )
    SC159 = (
        "The pattern file {path} cannot be read: {reason}. Change [components.NAME.features] path."
    )
    SC160 = (
        "{path}, line {line}: byte {byte:#04x} is not UTF-8. Convert the file to UTF-8, for "
        "instance with iconv."
    )
    SC161 = (
        "The regular expression {expression!r} of a pattern took more than {seconds} s to search "
        "the text {text!r}: it tries very many ways to match. Write it with fewer repetitions."
    )

    # SC2xx: component, targets, training loop
    SC201 = (
        "Component '{name}' cannot predict: it has no labels. Train it (`spacy train`, or "
        "nlp.initialize with examples and nlp.update), or load a trained pipeline."
    )
    SC202 = (
        "Component '{name}' was not initialized in this process, so it has no corpus to learn "
        "from. A batch solver reads its corpus in `initialize`, which spaCy does not call for "
        "a loaded component or one with `source` in the config. Either freeze it ([training] "
        'frozen_components = ["{name}"]), or continue its training: in [components.{name}] '
        'replace `source = ...` by `factory = "sparse_crf"` with the same settings, and give '
        "the saved pipeline as [initialize.components.{name}] init_weights = path."
    )
    SC203 = (
        "Component '{name}' has nothing to learn from: none of the {n_tokens} tokens that it "
        "was initialized with has an aligned gold annotation that its target "
        "([components.{name}.target]) reads. Check the attribute, and that the corpus was "
        "written with correct spaces between its words."
    )
    SC204 = (
        "[training] max_epochs = -1 streams the corpus and shows component '{name}' only its "
        "first 100 examples, but its solver ([components.{name}.solver]) needs all of them. "
        "Set [training] max_epochs = 0 and stop by patience or max_steps; or choose a solver that "
        "learns from batches, such as spacy_sparsecrf.SGDL1.v1."
    )
    SC205 = "[components.{name}] {key} = {value!r} is not valid: it must be {expected}."
    SC206 = (
        "Gold label {label!r} is not among the labels given to component '{name}' ([initialize."
        "components.{name}.labels]): {known}. Add it there, or write the labels anew with "
        "`spacy init labels`. The text begins: {text!r}."
    )
    SC207 = (
        "[initialize.components.{name}] init_weights = {path} has no weights for component "
        "'{name}'. Give a saved pipeline with a component of that name, the directory of one "
        "component, or its file `model`. Looked for: {tried}."
    )
    SC208 = (
        "The weights of [initialize.components.{name}] init_weights have labels that are not "
        "among the labels given ([initialize.components.{name}.labels]): {labels}. Add them "
        "there, or leave the labels out so that both sets are united."
    )
    SC209 = (
        "The objective of component '{name}' became {objective}. Raise "
        "the penalties ([components.{name}] l1, l2); if that does not help, this is a bug of "
        "the solver ([components.{name}.solver])."
    )
    SC210 = (
        "The directory of component '{name}' has format {found}; this version of "
        "spacy-sparsecrf reads formats up to {known}. Upgrade spacy-sparsecrf."
    )
    SC211 = (
        "The files `cfg` and `model` of component '{name}' disagree about its labels: {cfg} "
        "against {model}. They were not saved together; restore both from one saved pipeline."
    )
    SC212 = "{label!r} cannot be a label of component '{name}': a label is a non-empty string."
    SC213 = (
        "Component '{name}' cannot be set to {n} outputs: it has {n_labels} labels, and its "
        "outputs grow by name. Use add_label."
    )
    SC214 = (
        "[components.NAME.target] attr = {attr!r} is not a token attribute that can be "
        "predicted. Choose one of: {known}."
    )
    SC215 = (
        "{label!r} cannot be written to token.pos: it is not a universal part of speech. "
        'Choose one of: {known}; or write it as a tag, [components.NAME.target] attr = "tag".'
    )
    SC216 = (
        "Component '{name}' is initialized with a function that returns Example objects, but "
        "got {got}. Call nlp.initialize(lambda: examples)."
    )
    SC217 = (
        "Component '{name}' was initialized with no examples at all. Check the path of "
        "[training] train_corpus."
    )
    SC218 = (
        "The batcher spacy_sparsecrf.one_step_per_epoch.v1 got a training corpus without "
        "examples. Check the path of [training] train_corpus."
    )

    # SC3xx: corpus, model file, solvers
    SC301 = (
        "The corpus has {n} distinct observation tests; at most 2147483647 can be numbered. Use "
        "fewer or shorter conjunctions in [components.NAME.features] templates."
    )
    SC302 = "A corpus without any sequence was given: there is nothing to learn from."
    SC303 = (
        "The penalty {key} = {value} is not a finite number >= 0. Change [components.NAME] "
        "{key} (default: l1 = 0.5, l2 = 0.00001)."
    )
    SC304 = (
        "n_threads = {value} is negative. Change [components.NAME] n_threads: the number of "
        "threads, or 0 for one a core."
    )
    SC305 = (
        "No token of the training corpus has a gold label. Check that the annotation named in "
        "[components.NAME.target] is in the training data and aligned with its tokens."
    )
    SC306 = (
        "The solver setting {key} = {value} must be at least {low}. Change "
        "[components.NAME.solver] {key}."
    )
    SC307 = (
        "The objective is not finite at the weights that training starts from. They are too "
        "large for this corpus: check [initialize.components.NAME] init_weights."
    )
    SC308 = (
        "The solver {solver} minimises l1 = 0 only. Set [components.NAME] l1 = 0, or choose "
        "another [components.NAME.solver], such as spacy_sparsecrf.OWLQN.v1."
    )
    SC309 = (
        "The solver {solver} needs a quadratic penalty. Set [components.NAME] l2 > 0, or choose "
        "another [components.NAME.solver], such as spacy_sparsecrf.OWLQN.v1."
    )
    SC310 = (
        "Weights cannot be stored as {value!r}. Change [components.NAME] dtype to 'float32' or "
        "'float64'."
    )
    SC311 = "The {n} labels of a model must be distinct, and at most {most}."
    SC312 = (
        "This is not a model of spacy-sparsecrf, or only its beginning. Was the file cut off when "
        "it was copied? Copy or train it again."
    )
    SC313 = (
        "The model has format {found}; this version of spacy-sparsecrf reads formats up to "
        "{known}. Upgrade: pip install -U spacy-sparsecrf."
    )
    SC314 = (
        "The model file is damaged ({reason}): it was truncated or changed after it was written. "
        "Copy or train it again."
    )
    SC315 = (
        "{path} is not a checkpoint of a training run. Change [initialize.components.NAME] "
        "checkpoint to a file that does not exist, or to one that training wrote."
    )
    SC316 = (
        "The checkpoint {path} is of another training run: {differing} differ. Train with the "
        "settings and the corpus that it was made with, or remove the file to begin anew."
    )
    SC320 = (
        "Training would take about {needed} of memory, and {available} are available: with l1 = 0 "
        "all {n_potential} potential weights of {n_tests} tests and {n_labels} labels are in use. "
        "Set [components.NAME] l1 > 0, under which most cost nothing; or keep fewer: "
        "[components.NAME.learning] observed_only = true ({n_observed} weights) or min_freq > 1."
    )
    SC321 = (
        "Training would take about {needed} of memory, and {available} are available: "
        "{n_tests} tests, {n_labels} labels, {n_potential} potential and {n_observed} observed "
        'weights. Set [components.NAME] precision = "float32"; raise [components.NAME.learning] '
        "min_freq; use fewer templates, b: ones first; or learn from batches (a solver such as "
        "spacy_sparsecrf.SGDL1.v1 with on_batches = true)."
    )
    SC322 = (
        "l1 = {l1} is below {least}, with which training was set up, and at which tests were left "
        "out that have no weights there. Set it up with the least l1 that it will get to."
    )
    SC325 = (
        "The solver setting {key} = {value!r} is not known. Change [components.NAME.solver] {key} "
        "to one of: {known}."
    )
    SC330 = (
        "Stage {stage} of [components.NAME.learning] schedule names {pattern!r}, which is none of "
        "[components.NAME.features] templates: {known}. Write a template as it is there, a family, "
        "or a pattern in which * stands for any text."
    )
    SC331 = (
        "No stage of [components.NAME.learning] schedule names the templates {templates}. Name "
        'each in a stage, or add a last one with "*", which names all that are left.'
    )
    SC332 = (
        "Stage {stage} of [components.NAME.learning] schedule: {parent} cannot be a parent of "
        "{child}: {reason}. Name a template of a stage before that tests a part of what {child} "
        "tests, or [] for no parents."
    )
    SC333 = (
        "[components.{name}.learning] schedule names templates, but [components.{name}.features] "
        'has none. Choose @crf_features = "spacy_sparsecrf.Templates.v1", or remove the schedule.'
    )
    SC334 = (
        "With [components.{name}.learning] schedule, [components.{name}] {key} = {value} must be "
        "{needed}. Change {key}, or remove the schedule."
    )
    SC335 = (
        "Stage {stage} of [components.NAME.learning] schedule names no templates but those of "
        "stages before. Remove it, or correct its templates."
    )
    SC336 = (
        "The solver {solver} has no penalty, but l2 = {l2}. Set [components.NAME] l2 = 0, or "
        "choose another [components.NAME.solver], such as spacy_sparsecrf.SGD.v1."
    )
    SC337 = (
        "The solver {solver} needs sequences all of whose tokens have gold labels, and the corpus "
        "has none. Annotate whole sequences, or choose another [components.NAME.solver], such as "
        "spacy_sparsecrf.SGD.v1."
    )
    SC338 = (
        "The weights of the solver {solver} have grown without bounds. Lower its step, "
        "[components.NAME.solver] eta0, or choose a solver that needs none, such as "
        "spacy_sparsecrf.OWLQN.v1."
    )
    SC339 = (
        "A regularisation path has no stages: which tests a stage admits depends on l1. Set "
        "[components.NAME.learning] schedule = [], or train at one l1 by `spacy train`."
    )
    SC340 = (
        "The solver {solver} minimises the loss of per-position models only. Set [components.NAME] "
        'model = "memm" or "maxent"; or, for a chain, choose another [components.NAME.solver]: '
        "spacy_sparsecrf.OWLQN.v1, spacy_sparsecrf.NewtonCG.v1 or spacy_sparsecrf.SAG.v1."
    )
    SC341 = (
        "Without a penalty the solver {solver} has no minimum to reach: {n} pairs of a test and a "
        "label never occur in the training corpus, so that their weights tend to -infinity. Set "
        "[components.NAME] l1 or l2 > 0."
    )
    SC342 = (
        "A model of kind {value!r} is not known. Change [components.NAME] model to one of: {known}."
    )
    SC343 = (
        "Labels are put in clusters only where they do not depend on each other, not with "
        '[components.NAME] model = {kind!r}. Set model = "maxent", or clusters = 0.'
    )
    SC344 = (
        "{n_labels} labels cannot be put in {value} clusters: there must be at least 0, at most as "
        "many as labels, and with them at most {most}. Change [components.NAME] clusters; about "
        "the square root of the number of labels is fastest."
    )
    SC380 = (
        "Gold label {label!r} of a batch is not among the labels of component '{name}', which are "
        "fixed once training on batches has begun: {known}. Name all labels before: write them "
        "with `spacy init labels` and give the file as [initialize.components.{name}.labels], or "
        "use add_label. The text begins: {text!r}."
    )
    SC381 = (
        "Component '{name}' learns from batches, but [training.batcher] is "
        "spacy_sparsecrf.one_step_per_epoch.v1, which hands over the first example of each epoch "
        "only. Choose one of spaCy's batchers, such as spacy.batch_by_words.v1."
    )
    SC382 = (
        "The solver {solver} learns from batches, and {key} = {value} asks for passes over a whole "
        "corpus. Set [components.NAME.solver] {key} = {needed}; or have it learn from the whole "
        "corpus, by on_batches = false there and [training] max_epochs = 0."
    )
    SC383 = (
        "Training on batches has no labels in clusters, but clusters = {clusters}. Set "
        "[components.NAME] clusters = 0; or learn from the whole corpus, by [components.NAME."
        "solver] on_batches = false and [training] max_epochs = 0."
    )
    SC384 = (
        "Training on batches cannot use [components.{name}.learning] {key} = {value!r}, for which "
        "the whole corpus must be known. Set {key} = {needed}; or learn from the whole corpus, by "
        "[components.{name}.solver] on_batches = false and [training] max_epochs = 0."
    )

    # SC4xx: decoding
    SC401 = (
        "[components.{name}.decoding] has settings that are not known: {unknown}. Remove them, or "
        "choose from: {known}."
    )
    SC402 = "[components.{name}.decoding] {key} = {value!r} is not valid: it must be {expected}."
    SC403 = (
        "[components.NAME.decoding] {key} names {label!r}, which is not a label of the component. "
        'Its labels are: {known}; "" stands for the boundary of a sequence.'
    )
    SC404 = (
        "With the transitions that [components.NAME.decoding] forbidden and allowed, and the "
        "target's scheme, leave, {problem}. Take pairs from `forbidden`, or add some to "
        '`allowed`: ["", label] lets a label begin a sequence, [label, ""] lets it end one.'
    )
    SC405 = (
        "The {what} have shape {shape} and type {dtype}, but must be an array {expected} of bool. "
        "Correct the method `{method}` of the target ([components.NAME.target])."
    )
    SC406 = (
        "{n_labels} labels were given for {n_tokens} tokens. Give one for each token, in their "
        "order."
    )
    SC407 = "n = {n!r} paths cannot be found: give a whole number that is at least 1."
    SC408 = (
        "Span {number}, of {length} tokens from token {start}, is empty or not within the "
        "{n_tokens} tokens given. Count tokens from 0, and give one label for each token."
    )
    SC409 = "{label!r} is not a label of component '{name}'. Its labels are: {known}."

    # SC5xx: targets
    SC501 = (
        "[components.NAME.target] scheme = {value!r} is not a way to tell spans by the labels of "
        "tokens. Change it to one of: {known}."
    )
    SC502 = (
        "Two gold spans of doc.spans[{key!r}] overlap at {span!r}; labels of tokens cannot tell "
        "both. Remove one of them, or put them in groups of their own, each with a component "
        "([components.NAME.target] key). The text begins: {text!r}."
    )
    SC503 = (
        "The gold entities of a Doc are damaged: {reason} Set them anew, by doc.ents or "
        "doc.set_ents. The text begins: {text!r}."
    )
    SC504 = (
        "[components.{name}] threshold = {value} leaves out entities and spans, but this "
        "[components.{name}.target] has none. Set it to 0, or use the factory sparse_crf_ner or "
        "sparse_crf_spans."
    )
    SC505 = (
        "{label!r} is not a label of a token that tells spans in the scheme {scheme}: {known}. "
        "Give types of spans by add_label, or labels as `spacy init labels` writes them."
    )
    SC506 = (
        "[components.NAME.target] attr = {attr!r} cannot be written. Name an extension attribute "
        "with a default value, or with a getter and a setter: Token.set_extension(name, "
        'default=None), attr = "_.name".'
    )
    SC507 = (
        "The gold value {value!r} of token.{attr} is not a string. Make the values of the "
        "training Docs strings; None or an empty string is no label. The text begins: {text!r}."
    )
    SC508 = (
        "[components.NAME.target] key is empty. Name the group of doc.spans to learn and write, "
        'such as "sc".'
    )
    SC509 = (
        "Component '{name}' learns labels of tokens, not of spans. Ask it for span_probabilities, "
        "with the labels of each token."
    )

    # SC35x to SC37x: learning
    SC350 = (
        "[components.{name}.learning] has settings that are not known: {unknown}. Remove them, or "
        "choose from: {known}."
    )
    SC351 = (
        "With [components.NAME.learning] min_freq = {min_freq} no observation test is left: none "
        "occurs at so many of the {n_tokens} training tokens. Lower it."
    )
    SC352 = "[components.{name}.learning] {key} = {value!r} is not valid: it must be {expected}."
    SC353 = (
        "[components.{name}.learning] label_weights has weights for {unknown}, which are no labels "
        "of the component. Its labels are: {known}."
    )
    SC354 = (
        "[components.{name}.learning] doc_weight = {attribute!r} is not an extension of Doc. "
        "Register it before training, Doc.set_extension({attribute!r}, default=1.0), in a file "
        "that `spacy train --code` reads; and write the corpus with "
        "DocBin(store_user_data=True)."
    )
    SC355 = (
        "doc._.{attribute}, which [components.{name}.learning] doc_weight names, is {value!r} in "
        "a training Doc, but must be a finite number >= 0. The text begins: {text!r}."
    )
    SC356 = (
        "All training sequences have weight 0: there is nothing to learn from. Change "
        "[components.NAME.learning] doc_weight or label_weights, or the weights themselves."
    )
    SC357 = (
        "[components.NAME.learning] constrained = true is for models of whole sequences, not for "
        'those of single labels, [components.NAME] model = {kind!r}. Set model = "chain", or '
        "constrained = false: predictions are legal in any case."
    )
    SC358 = (
        "With [components.NAME.learning] constrained = true all gold labels must be legal, but "
        "{problem}: token {number} (from 0) of {place}. Correct the annotation or the constraints "
        "([components.NAME.decoding] forbidden and allowed, and the target's scheme), or set "
        "constrained = false."
    )
    SC359 = (
        "The solver {solver} cannot leave illegal sequences out of training. Set "
        "[components.NAME.learning] constrained = false, or choose another "
        "[components.NAME.solver], such as spacy_sparsecrf.OWLQN.v1."
    )
    SC360 = (
        "{n} training tokens may have several gold labels each, which a model with labels in "
        "clusters cannot learn from. Set [components.NAME] clusters = 0, or give each token one "
        "label or none."
    )
    SC361 = (
        "The solver {solver} cannot learn from tokens that may have several gold labels. Give each "
        "token one label or none, or choose another [components.NAME.solver], such as "
        "spacy_sparsecrf.OWLQN.v1."
    )
    SC362 = (
        "[components.{name}.learning] label_weights has the label {label!r} as a key, which would "
        "be lost when the config is saved. Write label_weights as a list of pairs: "
        "[[{label!r}, 2.0]]."
    )

    # SC39x: real-valued features
    SC390 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, reads a number, "
        "{read}, which can only be conjoined with the label, and with no other test. Write "
        "u:{read}[OFFSET] as a template of its own, or vector(2) for bins of a vector."
    )
    SC391 = (
        "[components.NAME.features] templates read {read}, but token._.{name} is a {kind} at the "
        "token {text!r}. It must be a number, a truth value, or None for 0."
    )
    SC392 = (
        "[components.NAME.features] templates read {read}, but token._.{name} is {value!r} at the "
        "token {text!r} of the Doc that begins {doc!r}, which is not a finite number of 32 bits. "
        "Correct it, or set it to None for 0."
    )
    SC393 = (
        "The solver {solver} cannot learn the weights of real-valued features ([components.NAME"
        ".features] templates with vector or value(...)). Choose another [components.NAME.solver], "
        "such as spacy_sparsecrf.OWLQN.v1, or read vectors in bins, as in vector(2)."
    )
    SC394 = (
        "A model with labels in clusters, [components.NAME] clusters = {clusters}, cannot have "
        "real-valued features ([components.NAME.features] templates with vector or value(...)). "
        "Set clusters = 0, or read vectors in bins, as in vector(2)."
    )

    # SC6xx: explaining, patching, the command line
    SC601 = (
        "The pipeline {model} has no component '{name}' with sparse CRF weights. Give --component "
        "one of: {known}."
    )
    SC602 = (
        "The pipeline {model} has {n} components with sparse CRF weights. Choose one by "
        "--component: {known}."
    )
    SC603 = (
        "{path}, line {line}, is no weight: {reason}. A line has a kind, a test, the label before, "
        "the label and a weight, separated by tabs, as `python -m spacy_sparsecrf dump` writes it."
    )
    SC604 = (
        "{path}, line {line}: the model has no label {label!r}, and labels cannot be added here. "
        "Choose one of: {known}."
    )
    SC605 = (
        "{path}, line {line}: test {test!r} can have no weight: no template or pattern of kind "
        "{kind} of the component is {template!r} (see [components.NAME.features]). Correct the "
        "name, or train with that template."
    )

    # SC61x: converting
    SC606 = (
        "A CRFsuite file has one label a token, but --columns says that it is {columns}. Name orth "
        "and one other, as in orth,ner."
    )
    SC610 = (
        "{path}, line {line}, is not UTF-8 ({reason}). Convert the file first, for instance by "
        "`iconv -f latin1 -t utf-8`."
    )
    SC611 = (
        "{path}, line {line}, has {found} columns, but {expected} are expected ({why}). Columns "
        "are separated by {separator}; an empty line ends a sentence."
    )
    SC612 = "{path} has no tokens: there is nothing to convert."
    SC613 = "What {path} contains does not show in its name. Say it by --format, one of: {known}."
    SC614 = (
        "--columns names {name!r}, which is not known. Known are: {known}, spans:KEY for other "
        "spans and _.NAME for an attribute of your own."
    )
    SC615 = (
        "{path}, line {line}: {value!r} is not a label that can stand here ({reason}). Labels "
        "are read as {scheme}; choose another --scheme if the file has one: {known}."
    )
    SC616 = "{path}, line {line}: {value!r} cannot be a value of {column} ({reason})."
    SC617 = (
        "{path}, line {line}: the attributes of a CRFsuite file are not tokens, and none here is "
        "{wanted}=VALUE. Say by --attribute which of them has the words, as in --attribute 'w[0]'; "
        "this line has: {known}."
    )
    SC618 = "{path} cannot be decompressed ({reason}). Copy or compress it again."
    SC619 = (
        "Token {token} of document {doc} of {path} cannot be written to column {column}: "
        "{value!r} {reason}."
    )
    SC620 = (
        "Exactly one of {source} and {target} must be a .spacy file: text is converted to it, and "
        "it to text in columns."
    )
    SC621 = "{path} is not a .spacy file that can be read: {reason}."
    SC622 = (
        "--columns {columns!r} cannot be converted: it must name the words once, as orth, and no "
        "attribute twice."
    )

    # SC7xx: regularisation path
    SC701 = (
        "The regularisation path needs solutions at each l1, which the solver {solver} does not "
        "find: it is approximate, or minimises l1 = 0 only. Change [components.NAME.solver], for "
        "example to spacy_sparsecrf.OWLQN.v1."
    )
    SC702 = (
        "{values} are not values of l1 for a regularisation path. Give --l1 finite numbers above "
        "0, separated by commas, such as --l1 2,1,0.5."
    )
    SC703 = "A regularisation path has at least one point, not {n}. Change --points."
    SC704 = (
        "The regularisation path ends at [components.NAME] l1 = {lowest:g}, which is not between "
        "0 and {highest:g}, from where on all weights are zero. Change l1, or give --l1."
    )
    SC705 = (
        "The objective became {objective} at l1 = {l1:g}. Raise [components.NAME] l2, or choose "
        "another [components.NAME.solver]."
    )
    SC706 = (
        "The regularisation path is that of one sparse CRF, but the pipeline {pipeline} has {n} "
        "that would be trained: {names}. Put one into [nlp] pipeline, and freeze all others "
        "([training] frozen_components)."
    )
    SC707 = (
        "Beside '{name}', `spacy train` would train {others}, which the regularisation path does "
        "not do. Train them first, then source them, or name them in [training] frozen_components."
    )
    SC708 = (
        "{path} is there already and is not a saved pipeline, so it is not overwritten. Give "
        "another --output."
    )
    SC709 = (
        "None of [training.score_weights], {weights}, is among the scores of the pipeline: "
        "{known}. Name one that is, so that the regularisation path can choose a model."
    )
    SC710 = (
        "--within {within} is how many points of 100 the score of the smallest model may be below "
        "the best: a number >= 0, which goes with --choose smallest only."
    )
    SC711 = "--l1 and --points exclude each other: --points is the length of an automatic sequence."
    SC712 = (
        "[initialize.components.{name}] checkpoint = {path!r} is for `spacy train`: a "
        "regularisation path is not continued from a checkpoint. Remove it."
    )
    SC713 = (
        "--window {window} is the fraction of the objective below which an outer iteration ends a "
        "point: at least 0 and less than 1, such as 0.001."
    )


class Warnings(metaclass=_Coded):
    """Messages of warnings."""

    # SCW2xx: component, targets, training loop
    SCW201 = (
        "Component '{name}': {n_missing} of {n_tokens} training tokens have no aligned gold "
        "annotation and are summed over. If the corpus is meant to be annotated throughout, "
        "check its tokenization and the spaces between its words."
    )
    SCW202 = (
        "Component '{name}' was trained on {trained}, but now gets {given}. Let the same "
        "pipes set sentence boundaries in training ([training] annotating_components) and in "
        'prediction, or set [components.{name}] sequences = "docs".'
    )
    SCW203 = (
        "Component '{name}' reads the annotations of '{upstream}' once, before '{upstream}' "
        "is trained in this run. Train '{upstream}' first, then source it and name it in "
        "[training] frozen_components as well as in annotating_components."
    )

    # SCW3xx: losses
    SCW340 = (
        'With [components.NAME] model = "maxent" labels do not depend on each other: the {n} tests '
        "that templates conjoin with pairs of labels are left out. Remove b: templates and write "
        'u: for *: in [components.NAME.features] templates, or set model = "memm" or "chain".'
    )

    # SCW4xx: decoding
    SCW401 = (
        "{n} sequences have no path through the labels that are set or permitted without a "
        "transition that is not allowed ([components.NAME.decoding], and the target's scheme). "
        "What is set is kept, with as few such transitions as can be. Correct the annotation "
        "that the Docs come with, or set [components.NAME] overwrite = true."
    )
    SCW402 = (
        "{n} tokens have no permitted label: what they are annotated with is no label of the "
        "component. They are decoded as if nothing was set. Correct the annotation that the Docs "
        "come with, or set [components.NAME] overwrite = true."
    )

    # SCW35x: learning
    SCW350 = (
        "[components.{name}.learning] constrained = true changes nothing: all sequences of the "
        "labels are legal. Name transitions in [components.{name}.decoding] forbidden or allowed, "
        "choose a target with a scheme, or set constrained = false."
    )

    # SCW6xx: explaining
    SCW601 = (
        "The file `names` of a component cannot be read ({reason}): tests are called by their "
        "hashes. Copy it again; a component works without it."
    )

    # SCW7xx: regularisation path
    SCW701 = (
        "At l1 = {l1:g} the solver was stopped after {n} outer iterations, before it had converged "
        "(optimality {optimality:.2g}). Raise [training] max_steps, or set it to 0."
    )
