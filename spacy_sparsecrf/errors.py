"""Every message of the package, with its code, its exception and its warning category."""

import warnings


class SparseCRFWarning(UserWarning):
    """Warn of something in data or settings that is probably a mistake."""


class SparseCRFError(ValueError):
    """Report an error of this package; the message starts with its code."""


def warn(message: str) -> None:
    """Raise a SparseCRFWarning, attributed to the caller of the calling function."""
    warnings.warn(message, SparseCRFWarning, stacklevel=3)


class _Coded(type):
    """Put the code in front of each message, as spaCy does: `[SC001] ...`."""

    def __getattribute__(cls, code: str) -> str:
        message: str = super().__getattribute__(code)
        return message if code.startswith("_") else f"[{code}] {message}"


class Errors(metaclass=_Coded):
    """Messages of errors: what failed, with which value, where, and what to do."""

    # SC1xx: features
    SC101 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, is malformed at "
        "character {position}: expected {expected}; found {found}."
    )
    SC102 = (
        "[components.NAME.features] templates = {value!r} is not a list of strings. Write it as "
        '["u:lower[0]", "b:"], or leave it out for the default.'
    )
    SC103 = (
        '[components.NAME.features] templates is empty. Name at least one, such as ["u:lower[0]", '
        '"b:"], or leave it out for the default.'
    )
    SC104 = (
        "Template {second} of [components.NAME.features] templates, {second_text!r}, repeats "
        "template {first}, {first_text!r}: both test the same with {conjoined}. Remove one."
    )
    SC105 = "[components.NAME] sequences = {value!r} is not known. Change it to one of: {known}."
    SC110 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, has a regular "
        "expression, for which the package `regex` is needed and missing. Install it: pip install "
        "spacy-sparsecrf[regex]."
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
        "{text!r} of the Doc that begins {doc!r}. Repair or replace [initialize] vectors."
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
    SC133 = "[components.NAME.features] phrase_attr = {value!r} is not known. Use one of: {known}."
    SC134 = (
        "The file {path}, named in [components.NAME.features] phrases {name!r}, cannot be read: "
        "{reason}. Give the path of a UTF-8 text file with one phrase a line."
    )
    SC135 = (
        "Line {line} of the file {path}, named in [components.NAME.features] phrases {name!r}, is "
        "not UTF-8. Convert the file to UTF-8."
    )
    SC136 = (
        "[components.NAME.features] phrases {name!r} has no phrases. Fill the list or the file, or "
        "remove it and the templates that read it."
    )
    SC137 = (
        "What was saved with the pipeline does not fit its [components.NAME.features]: {reason}. "
        "Restore `cfg` and config.cfg from one saved pipeline, or train it again."
    )
    SC140 = (
        "[components.NAME.features] clusters: {value!r} is not valid. By name there must be one of "
        '{{"path": "paths.txt", "format": "brown"}}, where the format is "brown" or "word2vec", '
        '{{"lookups": "lexeme_cluster"}}, with "lang" if that is not the pipeline\'s, and '
        '{{"pipeline": "path"}}, with "component" and "name" if needed; and "prune": true for any.'
    )
    SC141 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, reads the word "
        "classes {name!r}, which are not in [components.NAME.features.clusters]. Known: {known}."
    )
    SC142 = (
        "{path}, named in [components.NAME.features.clusters] {name!r}, cannot be read: {reason}. "
        "Give the path of a file of word classes, or of a saved pipeline that has some."
    )
    SC143 = (
        "Line {line} of the file {path}, named in [components.NAME.features.clusters] {name!r}, is "
        "malformed: {reason}. Mend it, or change `format`."
    )
    SC144 = (
        "[components.NAME.features.clusters] {name!r} has no words. Fill it, or remove it and the "
        "templates that read it."
    )
    SC145 = (
        "[components.NAME.features.clusters] {name!r}: there is no table {table!r} of lookups of "
        "the language {lang!r}. Install it: pip install spacy-sparsecrf[clusters], which has the "
        "table lexeme_cluster for de, en and es; or give the words as a file."
    )
    SC146 = (
        "[components.NAME.features.clusters] {name!r}: the table {table!r} of lookups does not map "
        "words to whole numbers that are not negative. Name a table of word classes."
    )
    SC147 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, reads bits of "
        "the word classes {name!r}, which are numbers without meaningful bits. Read the whole "
        'class: cluster("{name}").'
    )
    SC148 = (
        "The file `clusters` of a component is damaged: {reason}. Restore it from where the "
        "pipeline was saved, or train the pipeline again."
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
    SC155 = "[components.NAME.features] needs either path, a pattern file, or text, the patterns."
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
    SC159 = "Pattern file {path} cannot be read: {reason}. Change [components.NAME.features] path."
    SC160 = "{path}, line {line}: byte {byte:#04x} is not UTF-8. Convert it, for instance by iconv."
    SC161 = (
        "The regular expression {expression!r} of a pattern took more than {seconds} s to search "
        "the text {text!r}: it tries very many ways to match. Write it with fewer repetitions."
    )

    # SC2xx: the component, its parts and its training loop
    SC201 = (
        "Component '{name}' cannot predict: it has no labels. Train it (`spacy train`, or "
        "nlp.initialize with examples and nlp.update), or load a trained pipeline."
    )
    SC202 = (
        "Component '{name}' was not initialized in this process, so it has no corpus to learn "
        "from, and it has no weights to go on from by learning from batches. Call nlp.initialize "
        "with examples, or load a trained pipeline."
    )
    SC203 = (
        "Component '{name}' has nothing to learn from: none of the {n_tokens} tokens that it was "
        "initialized with has an aligned gold annotation that its target "
        "([components.{name}.target]) reads. Check the attribute, and that the corpus was written "
        "with correct spaces between its words."
    )
    SC204 = (
        "[training] max_epochs = -1 streams the corpus and shows component '{name}' only its first "
        "100 examples, but its solver ([components.{name}.solver]) needs all of them. Set "
        "[training] max_epochs = 0 and stop by patience or max_steps; or choose a solver that "
        "learns from batches, such as spacy_sparsecrf.SGDL1.v1."
    )
    SC205 = "[components.{name}] {key} = {value!r} is not valid: it must be {expected}."
    SC206 = (
        "Gold label {label!r} is not among the labels given to component '{name}' "
        "([initialize.components.{name}.labels]): {known}. Add it there, or write the labels anew "
        "with `spacy init labels`. The text begins: {text!r}."
    )
    SC207 = (
        "{key} = {path} has no weights for component '{name}'. Give a saved pipeline with a "
        "component of that name, the directory of one component, or its file `model`. Looked for: "
        "{tried}."
    )
    SC208 = (
        "The weights of [initialize.components.{name}] init_weights have labels that are not among "
        "the labels given ([initialize.components.{name}.labels]): {labels}. Add them there, or "
        "leave the labels out so that both sets are united."
    )
    SC209 = (
        "The objective of component '{name}' became {objective}. Raise the penalties "
        "([components.{name}] l1, l2); if that does not help, this is a bug of the solver "
        "([components.{name}.solver])."
    )
    SC210 = (
        "The directory of component '{name}' has format {found}; this version of spacy-sparsecrf "
        "reads formats up to {known}. Upgrade spacy-sparsecrf."
    )
    SC211 = (
        "The files `cfg` and `model` of component '{name}' disagree about its labels: {cfg} "
        "against {model}. They were not saved together; restore both from one saved pipeline."
    )
    SC212 = "{label!r} cannot be a label of component '{name}': a label is a non-empty string."
    SC213 = "Component '{name}' cannot have {n} outputs: it has {n_labels} labels. Use add_label."
    SC214 = "[components.NAME.target] attr = {attr!r} cannot be predicted. Choose one of: {known}."
    SC215 = (
        "{label!r} cannot be written to token.pos: it is not a universal part of speech. Choose "
        'one of: {known}; or write it as a tag, [components.NAME.target] attr = "tag".'
    )
    SC216 = (
        "Component '{name}' is initialized with a function that returns Example objects, but got "
        "{got}. Call nlp.initialize(lambda: examples)."
    )
    SC217 = "Component '{name}' got no examples at all. Check the path of [training] train_corpus."
    SC218 = (
        "The batcher spacy_sparsecrf.one_step_per_epoch.v1 got a training corpus without examples. "
        "Check the path of [training] train_corpus."
    )
    SC219 = (
        "Component '{name}' learns {attr}, which has the score {own}, but [training.score_weights] "
        "names {unfit} only, which would be 0 in each row: the best model would not be chosen by "
        "what it learns. Add to the config:\n[training.score_weights]\n{own} = 1.0\n{unfit} = null"
    )
    SC220 = (
        "The reader spacy_sparsecrf.AnnotatedCorpus.v1 knows no annotation {name!r}. In "
        "[corpora.NAME] annotations is a list of names, each of them one of {known}, ents, spans, "
        "spans(key) of a key of doc.spans, or _.name of an extension attribute of tokens."
    )
    SC221 = (
        "The reader spacy_sparsecrf.AnnotatedCorpus.v1 is to hand _.{name} over ([corpora.NAME] "
        "annotations), which is no extension attribute of tokens. Register it by "
        'Token.set_extension("{name}", default=None) in a file given to `spacy train --code`.'
    )
    SC222 = (
        "Component '{name}' was initialized without examples: nlp.initialize() without an argument "
        "makes up one Doc, whereas a batch solver learns from the examples that it reads there, "
        "and from no others. Call nlp.initialize(lambda: examples) with all training examples; "
        "each nlp.update is then one iteration over them."
    )
    SC223 = (
        "The checkpoint of a run that was cut off has no model of step {n}, which is asked for: "
        "models were evaluated at other steps. Begin the loop anew, with [training] eval_frequency "
        "as it was; or remove the file ([initialize.components.NAME] checkpoint) to train anew."
    )
    SC224 = (
        "The system has no more memory for component '{name}'. What was saved is as it was. Set "
        '[components.{name}] precision = "float32" or a larger l1, or corpus_dir in '
        "[initialize.components.{name}] to a directory for the corpus; with a checkpoint there, "
        "training goes on."
    )
    SC233 = (
        "[components.{name}] edges has {edge!r}, which is none. Write 'chain'; same(ATTR), with "
        "if=ATTR, most=N and far=N if need be, as in same(lower, if=is_title); link(_.NAME); "
        "'rows' or 'columns'. ATTR is an attribute of templates without arguments, or _.NAME."
    )
    SC234 = (
        "[components.NAME] edges has {edge!r}, but token._.{name} is not registered. Register it, "
        "Token.set_extension({name!r}, default=None), in a file given to `spacy train --code`."
    )
    SC235 = (
        "{value!r}, which [components.NAME] edges {edge!r} reads at the token {token!r}, is not "
        "the position of another token of its Doc, nor None. The text begins: {text!r}."
    )
    SC236 = (
        "[components.{name}{key} does not go together with model: edges other than ['chain'] need "
        "model = 'graph', which tells probabilities of single tokens, and none of spans. Change "
        "one of the two."
    )
    SC237 = "[components.{name}.inference] has unknown settings: {unknown}. Choose from: {known}."

    # SC3xx: corpora, losses, solvers, learning, model files, graphs
    SC301 = (
        "The corpus has {n} distinct observation tests; at most 2147483647 can be numbered. Use "
        "fewer or shorter conjunctions in [components.NAME.features] templates."
    )
    SC302 = "A corpus without any sequence was given: there is nothing to learn from."
    SC303 = (
        "The penalty {key} = {value} is not a finite number >= 0. Change [components.NAME] {key} "
        "(defaults: l1 = 0.1, l2 = 0.3; of entities 0.2 and 1)."
    )
    SC304 = "[components.NAME] n_threads = {value} is negative: give a number, or 0 for one a core."
    SC305 = (
        "No token of the training corpus has a gold label. Check that the annotation named in "
        "[components.NAME.target] is in the training data and aligned with its tokens."
    )
    SC306 = "[components.NAME.solver] {key} = {value} is too low: it must be at least {low}."
    SC307 = (
        "The objective is not finite at the weights that training starts from. They are too large "
        "for this corpus: check [initialize.components.NAME] init_weights."
    )
    SC308 = (
        "The solver {solver} minimises l1 = 0 only. Set [components.NAME] l1 = 0, or choose "
        "another [components.NAME.solver], such as spacy_sparsecrf.OWLQN.v1."
    )
    SC309 = (
        "The solver {solver} needs a quadratic penalty. Set [components.NAME] l2 > 0, or choose "
        "another [components.NAME.solver], such as spacy_sparsecrf.OWLQN.v1."
    )
    SC310 = "[components.NAME] dtype = {value!r} cannot store weights. Use 'float32' or 'float64'."
    SC311 = "The {n} labels of a model must be distinct, and at most {most}."
    SC312 = (
        "This is not a model of spacy-sparsecrf, or only its beginning. Was the file cut off when "
        "it was copied? Copy or train it again."
    )
    SC313 = (
        "The model has format {found}; this version of spacy-sparsecrf reads formats up to "
        "{known}. Upgrade: pip install -U spacy-sparsecrf."
    )
    SC314 = "The model file is damaged ({reason}). Copy or train it again."
    SC315 = (
        "{path} is not a checkpoint of a training run. Change [initialize.components.NAME] "
        "checkpoint to a file that does not exist, or to one that training wrote."
    )
    SC316 = (
        "The checkpoint {path} is of another training run: {differing} differ. Train with the "
        "settings and the corpus that it was made with, or remove the file to begin anew."
    )
    SC317 = (
        "The names of the labels take {size} bytes in the file of a model, which may be at most "
        "{most}. Give the labels shorter names."
    )
    SC318 = (
        "The checkpoint {path} cannot be read, or is damaged ({reason}). Copy it again, or remove "
        "the file ([initialize.components.NAME] checkpoint) to begin anew."
    )
    SC319 = (
        "{file} cannot be written: {reason}. What was in {folder} before is as it was. Make room "
        "there, or change {setting}."
    )
    SC320 = (
        "Training would take about {needed} of memory, and {available} are available: with l1 = 0 "
        "all {n_potential} potential weights of {n_tests} tests and {n_labels} labels are in use. "
        "Set [components.NAME] l1 > 0, under which most cost nothing; or keep fewer: "
        "[components.NAME.learning] observed_only = true ({n_observed} weights) or min_freq > 1."
    )
    SC321 = (
        "Training would take about {needed} of memory, and {available} are available: {n_tests} "
        "tests, {n_labels} labels, {n_potential} potential and {n_observed} observed weights. Set "
        '[components.NAME] precision = "float32"; raise [components.NAME.learning] min_freq; use '
        "fewer templates, b: ones first; or learn from batches (a solver such as "
        "spacy_sparsecrf.SGDL1.v1 with on_batches = true)."
    )
    SC322 = (
        "l1 = {l1} is below {least}, with which training was set up, and at which tests were left "
        "out that have no weights there. Set it up with the least l1 that it will get to."
    )
    SC325 = "[components.NAME.solver] {key} = {value!r} is not known. Change it to one of: {known}."
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
        "The weights of the solver {solver} grow without bounds. Lower its step, "
        "[components.NAME.solver] eta0, or choose another, such as spacy_sparsecrf.OWLQN.v1."
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
    SC342 = "[components.NAME] model = {value!r} is not known. Change it to one of: {known}."
    SC343 = (
        "Labels are put in clusters only where they do not depend on each other, not with "
        '[components.NAME] model = {kind!r}. Set model = "maxent", or clusters = 0.'
    )
    SC344 = (
        "{n_labels} labels cannot be put in {value} clusters: there must be at least 0, at most as "
        "many as labels, and with them at most {most}. Change [components.NAME] clusters; about "
        "the square root of the number of labels is fastest."
    )
    SC345 = (
        "The directory {path} of the encoded corpus cannot be written: {reason}. What was there "
        "before is as it was. Make room there, or change [initialize.components.NAME] corpus_dir."
    )
    SC346 = (
        "[initialize.components.NAME] corpus_dir does not go together with {setting}: that needs "
        "the whole corpus in memory. Remove one of the two."
    )
    SC347 = (
        "The solver {solver} needs the whole corpus in memory. Remove [initialize.components.NAME] "
        "corpus_dir, or train with one of OWLQN.v1, RPROP.v1, Hybrid.v1, SGDL1.v1, SGD.v1, "
        "AdaGrad.v1, SMD.v1 and Perceptron.v1."
    )
    SC348 = (
        "{path} is no complete corpus: {reason}. Something has changed its files. Train again: "
        "[initialize.components.NAME] corpus_dir is written anew in each initialization."
    )
    SC349 = (
        "{path} is there already, and is not an encoded corpus that may be replaced. Move it away, "
        "or give another directory as [initialize.components.NAME] corpus_dir."
    )
    SC350 = "[components.{name}.learning] has unknown settings: {unknown}. Choose from: {known}."
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
        "that `spacy train --code` reads; and write the corpus with DocBin(store_user_data=True)."
    )
    SC355 = (
        "doc._.{attribute}, which [components.{name}.learning] doc_weight names, is {value!r} in a "
        "training Doc, but must be a finite number >= 0. The text begins: {text!r}."
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
        "{n} training tokens may have several gold labels, which a model with clusters cannot "
        "learn from. Set [components.NAME] clusters = 0, or give each token one label or none."
    )
    SC361 = (
        "The solver {solver} cannot learn from tokens that may have several gold labels. Give each "
        "token one label or none, or choose another [components.NAME.solver], such as "
        "spacy_sparsecrf.OWLQN.v1."
    )
    SC362 = (
        "[components.{name}.learning] label_weights has the label {label!r} as a key, which is "
        "lost when the config is saved. Write a list of pairs: [[{label!r}, 2.0]]."
    )
    SC363 = (
        "[components.NAME.learning] entity_ratio is for models of whole sequences, not for those "
        'of single labels, [components.NAME] model = {kind!r}. Set model = "chain", or '
        "entity_ratio = {{}}."
    )
    SC364 = (
        "[components.{name}.learning] entity_ratio tells how many tokens are in entities or spans, "
        "but [components.{name}.target] has none. Set it to {{}}, or use sparse_crf_ner or "
        "sparse_crf_spans."
    )
    SC365 = (
        "The solver {solver} learns from sums over sequences, to which [components.NAME.learning] "
        "entity_ratio, a term of the whole corpus, does not belong. Set entity_ratio = {{}}, or "
        "choose another [components.NAME.solver]: spacy_sparsecrf.OWLQN.v1 or "
        "spacy_sparsecrf.RPROP.v1."
    )
    SC366 = (
        "The solver {solver} has no penalty around the weights of another model. Set "
        '[components.NAME.learning] prior = "", or choose another [components.NAME.solver], such '
        "as spacy_sparsecrf.OWLQN.v1."
    )
    SC367 = (
        "[components.NAME.learning] prior cannot be kept to with [components.NAME] {key} = "
        "{value}. Set that to 0."
    )
    SC368 = (
        "The pipeline of [components.NAME.learning] prior has no test in common with the training "
        "corpus. Use its templates, [components.NAME.features], and its labels."
    )
    SC370 = (
        "Graph {graph} cannot be encoded: tests, labels and edges must be as many as its nodes and "
        "edges, and numbers finite. Correct what is given to GraphBuilder.add."
    )
    SC371 = (
        "Edge {edge} of graph {graph} joins the nodes {nodes}, of which one is not in the graph. "
        "Number its nodes from 0."
    )
    SC372 = (
        "Edge {edge} of graph {graph} joins a node with itself: {nodes}. Remove it; what it tests "
        "for can be a test of the node."
    )
    SC373 = "The inference of a graph has {key} = {value!r}, which must be {expected}. Change it."
    SC374 = (
        "A node of a graph has the label {label}, but there are {n} labels, numbered from 0. "
        "Correct it, or give the number of labels."
    )
    SC375 = (
        "Pseudo-likelihood needs the gold labels of all nodes, and {n} graphs have nodes without. "
        'Annotate them, or choose method = "lbp" or "mean_field", which sum over them.'
    )
    SC376 = (
        "The solver {solver} works on chains only. For graphs, choose another "
        "[components.NAME.solver]: OWLQN.v1, RPROP.v1, SGDL1.v1, SGD.v1, AdaGrad.v1, SMD.v1 or "
        "Hybrid.v1 of spacy_sparsecrf."
    )
    SC377 = (
        "[components.NAME.{key} = {value} does not go together with [components.NAME] model = "
        '"graph": it must be {needed}. Change one of the two.'
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
        "[components.NAME] clusters = 0; or learn from the whole corpus, by "
        "[components.NAME.solver] on_batches = false and [training] max_epochs = 0."
    )
    SC384 = (
        "Training on batches cannot use [components.{name}.learning] {key} = {value!r}, for which "
        "the whole corpus must be known. Set {key} = {needed}; or learn from the whole corpus, by "
        "[components.{name}.solver] on_batches = false and [training] max_epochs = 0."
    )
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
        "The solver {solver} cannot learn the weights of real-valued features "
        "([components.NAME.features] templates with vector or value(...)). Choose a "
        "[components.NAME.solver] that can: spacy_sparsecrf.OWLQN.v1, spacy_sparsecrf.RPROP.v1 or "
        "spacy_sparsecrf.NewtonCG.v1; or read vectors in bins, as in vector(2)."
    )
    SC394 = (
        "A model with labels in clusters, [components.NAME] clusters = {clusters}, cannot have "
        "real-valued features ([components.NAME.features] templates with vector or value(...)). "
        "Set clusters = 0, or read vectors in bins, as in vector(2)."
    )
    SC395 = (
        "The solver {solver} needs one gold label for each token, and {n} training sequences have "
        "tokens with none or several: their loss has no dual. Annotate whole sequences, or choose "
        "another [components.NAME.solver], such as spacy_sparsecrf.SAG.v1."
    )
    SC396 = (
        "The solver {solver} is no longer there: what it trained predicts, but cannot be trained "
        "again. Set [components.NAME.solver] @crf_solvers to spacy_sparsecrf.OWLQN.v1, or, with l1 "
        "= 0, to spacy_sparsecrf.NewtonCG.v1."
    )

    # SC4xx: decoding, first-stage models, overlapping spans
    SC401 = "[components.{name}.decoding] has unknown settings: {unknown}. Choose from: {known}."
    SC402 = "[components.{name}.decoding] {key} = {value!r} is not valid: it must be {expected}."
    SC403 = (
        "[components.NAME.decoding] {key} names {label!r}, which is not a label of the component. "
        'Its labels are: {known}; "" stands for the boundary of a sequence.'
    )
    SC404 = (
        "With the transitions that [components.NAME.decoding] forbidden and allowed, and the "
        "target's scheme, leave, {problem}. Take pairs from `forbidden`, or add some to `allowed`: "
        '["", label] lets a label begin a sequence, [label, ""] lets it end one.'
    )
    SC405 = (
        "The {what} have shape {shape} and type {dtype}, but must be an array {expected} of bool. "
        "Correct the method `{method}` of the target ([components.NAME.target])."
    )
    SC406 = "{n_labels} labels were given for {n_tokens} tokens. Give one for each token, in order."
    SC407 = "n = {n!r} paths cannot be found: give a whole number that is at least 1."
    SC408 = (
        "Span {number}, of {length} tokens from token {start}, is empty or not within the "
        "{n_tokens} tokens given. Count tokens from 0, and give one label for each token."
    )
    SC409 = "{label!r} is not a label of component '{name}'. Its labels are: {known}."
    SC410 = (
        'A component with [components.NAME] model = "graph" tells probabilities of single tokens '
        "only (`marginals`), and they are approximate where edges make circles. Set model = "
        '"chain" for n-best labels, and for probabilities of whole sequences and of spans.'
    )
    SC411 = (
        "[components.{name}.learning] stack asks for a first model, of which no template reads "
        'anything. Add some to [components.{name}.features] templates, such as "u:first[0]" and '
        '"u:doc_majority[0]"; or set stack = {{}}.'
    )
    SC412 = (
        "[components.{name}.learning] stack and {key} cannot be combined. Set one of them to its "
        'default: stack = {{}}, schedule = [] or prior = "".'
    )
    SC413 = (
        "The templates of component '{name}' read doc_entity, but its target has labels of tokens, "
        "not entities or spans. Read doc_majority instead."
    )
    SC414 = (
        "[components.{name}.learning] stack folds = {folds} needs as many training Docs, but there "
        "are {n}. Give more Docs, or lower folds."
    )
    SC415 = (
        "Either the model file of component '{name}' or [components.{name}.learning] stack tells "
        "of two stages, but not both. Restore both from one saved pipeline."
    )
    SC416 = (
        "The templates of component '{name}' read {reads}, which a first model says, but there is "
        'none. Set [components.{name}.learning] stack = {{"folds": 5}}, or remove them.'
    )
    SC420 = (
        "[components.NAME.target] overlap = {value!r} is not valid. Set it to true, where spans of "
        'any two types may overlap, to lists of types such as [["A", "B"], ["C"]], where those of '
        "one list may not and each type is in one, or to false."
    )
    SC421 = (
        "The labels have no {group!r}, which [components.NAME.target] overlap asks for, but "
        "{known}: they were learnt with another `overlap`. Restore it, or train anew."
    )
    SC422 = (
        "Two gold spans of doc.spans[{key!r}] overlap at {span!r}, of type {name!r}, that one "
        "chain labels. Remove one of them, or put their types into different lists of "
        "[components.NAME.target] overlap. The text begins: {text!r}."
    )
    SC423 = (
        "Component '{name}' has several chains ([components.{name}.target] overlap), of which this "
        "is not told. Set [components.{name}.decoding] scores = true for probabilities of spans."
    )
    SC424 = (
        "[components.{name}{key} cannot be combined with spans that overlap "
        "([components.{name}.target] overlap). Change one of the two."
    )

    # SC5xx: targets
    SC501 = (
        "[components.NAME.target] scheme = {value!r} is not a way to tell spans by the labels of "
        "tokens. Change it to one of: {known}."
    )
    SC502 = (
        "Two gold spans of doc.spans[{key!r}] overlap at {span!r}; labels of tokens cannot tell "
        "both. Set [components.NAME.target] overlap = true, or remove one of them. The text "
        "begins: {text!r}."
    )
    SC503 = (
        "The gold entities of a Doc are damaged: {reason} Set them anew, by doc.ents or "
        "doc.set_ents. The text begins: {text!r}."
    )
    SC504 = (
        "[components.{name}] {key} = {value} leaves out entities and spans, but "
        "[components.{name}.target] has none. Set it to 0, or use sparse_crf_ner or "
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
        "The gold value {value!r} of token.{attr} is not a string. Make the values of the training "
        "Docs strings; None or an empty string is no label. The text begins: {text!r}."
    )
    SC508 = '[components.NAME.target] key is empty. Name the group of doc.spans, such as "sc".'
    SC509 = "Component '{name}' learns labels of tokens, not of spans. Ask for span_probabilities."

    # SC6xx: commands: explaining, patching, converting, importing, analysing
    SC601 = (
        "{model} has no component '{name}' with sparse CRF weights. Choose by --component: {known}."
    )
    SC602 = "{model} has {n} components with sparse CRF weights. Choose by --component: {known}."
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
    SC606 = (
        "A CRFsuite file has one label a token, but --columns says that it is {columns}. Name orth "
        "and one other, as in orth,ner."
    )
    SC607 = "There is no config {name!r}. Choose one of: {known}."
    SC610 = (
        "{path}, line {line}, is not UTF-8 ({reason}). Convert it, by `iconv -f latin1 -t utf-8`."
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
        "{path}, line {line}: {value!r} is not a label that can stand here ({reason}). Labels are "
        "read as {scheme}; choose another --scheme if the file has one: {known}."
    )
    SC616 = "{path}, line {line}: {value!r} cannot be a value of {column} ({reason})."
    SC617 = (
        "{path}, line {line}: the attributes of a CRFsuite file are not tokens, and none here is "
        "{wanted}=VALUE. Say by --attribute which of them has the words, as in --attribute 'w[0]'; "
        "this line has: {known}."
    )
    SC618 = "{path} cannot be decompressed ({reason}). Copy or compress it again."
    SC619 = "Token {token} of Doc {doc} of {path} cannot go to column {column}: {value!r} {reason}."
    SC620 = "Exactly one of {source} and {target} must be a .spacy file; the other is text."
    SC621 = "{path} is not a .spacy file that can be read: {reason}."
    SC622 = "--columns {columns!r} must name the words once, as orth, and no attribute twice."
    SC630 = (
        "{path} is no model that can be imported: it is neither Wapiti's, nor CRF++'s as text "
        "(crf_learn -t), nor CRFsuite's, nor a dump of one."
    )
    SC631 = "{path} is damaged, or not as {program} writes it: {reason}."
    SC632 = (
        "{path} was trained by Wapiti without patterns: what its features are is not known. Train "
        "it with a pattern file, as wapiti train -p."
    )
    SC633 = (
        "--target {target} is among --columns, which features read: the label would replace it. "
        "Name another, as in --target _.label."
    )
    SC634 = "{path} is no JSON object of strings, such as {example} ({reason})."
    SC640 = (
        "No token has a gold label that component '{name}' could have predicted: there is nothing "
        "to compare. Give Docs with the annotation that it learns ([components.{name}.target])."
    )
    SC641 = (
        "[{block}], by which {data} would be read, has no path. Choose a reader that has one, such "
        "as spacy_sparsecrf.AnnotatedCorpus.v1."
    )
    SC642 = "The wanted precision is {value}, but must lie between 0 and 1, such as 0.9."
    SC643 = (
        "{model} is no directory that the calibrated pipeline can be saved to. Give one by "
        "--output."
    )
    SC650 = (
        "There is nothing to learn word classes from. Give texts, or --vectors with a pipeline "
        "whose vectors are to be grouped, or both."
    )
    SC651 = (
        "{n} words are too few for {classes} classes. Give more text, lower --classes or "
        "--min-count, or, with vectors that are made of parts of words, texts that have the words."
    )
    SC660 = "{part} does not keep what its interface promises: {fact}."
    SC661 = "{part} does not keep what its interface promises: {fact} ({got} and not {expected})."
    SC662 = (
        "[components.{name}.{key}] is a {found}, which is no part of that kind. Choose one that is "
        "registered for it: @crf_{key} = ..., or @crf_{key}s = ... for others."
    )

    # SC7xx: the regularisation path
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
        "The regularisation path ends at [components.NAME] l1 = {lowest:g}, which is not between 0 "
        "and {highest:g}, from where on all weights are zero. Change l1, or give --l1."
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
    SC708 = "{path} is no saved pipeline, so it is not overwritten. Give another --output."
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

    # SC8xx: the estimator
    SC801 = (
        "{place} cannot be read ({reason}). X is a list of sequences, a sequence a list of tokens, "
        "and a token a dict of strings, numbers, truth values, or lists, sets and dicts of such, "
        "or a list of strings, or one string."
    )
    SC802 = (
        "X has {n_sequences} sequences, but {name} has {found}. Give one {each} for each sequence."
    )
    SC803 = (
        "X[{number}] has {n_tokens} tokens, but y[{number}] has {n_labels} labels. Give one label "
        "for each token, None where it is not known."
    )
    SC804 = "y[{number}][{token}] is {label!r}, which is no label. Labels are strings, or None."
    SC805 = (
        "This {name} has learnt nothing yet. Call fit(X, y) first, or from_pipe with a trained "
        "component."
    )
    SC806 = (
        "{name} has no partial_fit: the minimum that it finds is that of all sequences at once. "
        "Call fit with all of them."
    )
    SC807 = (
        "The solver {value!r} is not known. Give the name of one, such as {known}, or a solver "
        "itself, such as OWLQN(tolerance=1e-4)."
    )
    SC808 = (
        "{n_values} features have numbers other than 0 and 1, which takes {needed} MB for "
        "{n_tokens} tokens, and {available} MB are available. Give numbers in bins, as strings."
    )
    SC809 = "{name} = {value!r} cannot be ({reason})."
    SC810 = (
        "{n} features that have weights are no tests of templates: {shown}. A component reads "
        "features by templates only: name the test that is each of them by `tests` (--tests), as "
        'in {{"word.lower()": "lower[0]", "BOS": "lower[-1]=^1"}}, or fit without them.'
    )
    SC811 = (
        "{first!r} and {second!r} are both the test {name}, which has one weight for each label. "
        "Name another test for one of them, or fit without it."
    )
    SC812 = (
        "The tests of component '{name}' cannot be features of an estimator: some have no names, "
        "or are numbers. Train with names = true in [components.{name}], and without value(...) "
        "and vector in templates."
    )
    SC813 = (
        "algorithm = {value!r} is not that of CRF: it minimises CRFsuite's objective, as lbfgs and "
        "l2sgd do. For others see the solvers of SparseCRF, such as Perceptron."
    )

    # SC9xx: clusters
    SC900 = (
        "[initialize.components.{name}] shards: there is no .spacy file {pattern!r}. Correct the "
        "path, which is relative to the directory that the command runs in, or write the files."
    )
    SC901 = (
        "[initialize.components.{name}] shards: files are read as [training] train_corpus is, "
        "which has to name a block of [corpora] with a path, such as that of spacy.Corpus.v1."
    )
    SC902 = (
        "[corpora] {key} is about all files together, but component '{name}' reads its training "
        "files one by one. Remove it from the block of the training corpus."
    )
    SC903 = (
        "A corpus that is divided does not go together with {setting}. Remove them, or do not "
        "divide it: remove [initialize.components.NAME] shards, and set [components.NAME.engine] "
        '@crf_engines = "spacy_sparsecrf.Threads.v1".'
    )
    SC904 = "[components.NAME.engine] {key} = {value} must be a whole number of at least {low}."
    SC905 = (
        "The engine spacy_sparsecrf.Ray.v1 needs Ray, which is not installed. Install it by `pip "
        "install 'spacy-sparsecrf[ray]'`, here and on each machine of the cluster."
    )
    SC906 = (
        "Component '{name}' cannot learn from a corpus that is divided, with {setting} as it is "
        "set. Set it to its default (of solvers: OWLQN.v1, RPROP.v1, Hybrid.v1, SGDL1.v1 or "
        "Perceptron.v1), or do not divide the corpus: remove [initialize.components.{name}] "
        'shards, and set [components.{name}.engine] @crf_engines = "spacy_sparsecrf.Threads.v1".'
    )
    SC907 = (
        "Workers were lost {n} times, the last time because: {reason} Look for what ends them, "
        "such as a lack of memory, or raise [components.NAME.engine] max_restarts. Training goes "
        "on from its last step by the same command, if [initialize.components.NAME] checkpoint is "
        "set."
    )
    SC908 = (
        "The Ray cluster failed: {reason} Training goes on from its last step by the same command, "
        "if [initialize.components.NAME] checkpoint is set."
    )
    SC909 = (
        "[components.NAME.engine] address = {address!r}: no Ray cluster can be reached or started "
        "there: {reason} Start one by `ray start --head`, or set address = null for one of its own."
    )
    SC910 = (
        "The Ray cluster has no free cores for [components.NAME.engine] num_workers = "
        "{num_workers} with cpus_per_worker = {cpus_per_worker}. Change these, add machines, or "
        "wait until others have ended."
    )
    SC911 = (
        "A path of l1 is not learnt from a corpus that is divided. Do not divide it: remove "
        "[initialize.components.NAME] shards, and set [components.NAME.engine] @crf_engines = "
        '"spacy_sparsecrf.Threads.v1".'
    )
    SC920 = (
        "{path} is no file that can be annotated. Name .spacy files, .txt files with a Doc a line, "
        "or folders of these."
    )
    SC921 = (
        "{path} and {other} would both be written to one file of the folder --output. Rename one "
        "of them, or annotate them by two commands."
    )


class Warnings(metaclass=_Coded):
    """Messages of warnings; the areas are those of `Errors`."""

    SCW201 = (
        "Component '{name}': {n_missing} of {n_tokens} training tokens have no aligned gold "
        "annotation and are summed over. If the corpus is meant to be annotated throughout, check "
        "its tokenization and the spaces between its words."
    )
    SCW202 = (
        "Component '{name}' was trained on {trained}, but now gets {given}. Let the same pipes set "
        "sentence boundaries in training ([training] annotating_components) and in prediction, or "
        'set [components.{name}] sequences = "docs".'
    )
    SCW203 = (
        "Component '{name}' reads the annotations of '{upstream}' once, before '{upstream}' is "
        "trained in this run. Train '{upstream}' first, then source it and name it in [training] "
        "frozen_components as well as in annotating_components."
    )
    SCW204 = (
        "spacy-sparsecrf compiles its kernels anew in each process, for up to fifteen seconds, as "
        "it can write them neither beside its own files nor into a cache of the user's. Set the "
        "environment variable NUMBA_CACHE_DIR to a directory that can be written to; or run "
        "`python -m spacy_sparsecrf warmup` once where it can write, and keep what that compiles."
    )
    SCW205 = (
        "Templates of component '{name}' read {attribute}, which none of the {n_tokens} training "
        "tokens has: its tests are never true. Hand gold annotation over by the corpus reader "
        '(@readers = "spacy_sparsecrf.AnnotatedCorpus.v1" with annotations = [...], in each block '
        "of [corpora]), name the pipe that sets it in [training] annotating_components, or remove "
        "it from [components.{name}.features]."
    )
    SCW206 = (
        "Templates of component '{name}' read {attribute}, which none of these {n_tokens} tokens "
        "has, although {share:.1%} of the training tokens had it: predictions will be worse than "
        "in training. Put the pipe that sets it before '{name}', or give Docs that have it."
    )
    SCW207 = (
        "Component '{name}' learns from what `initialize` has read ({n} examples) and from nothing "
        "else, but `update` gets others, which it ignores: the first begins {text!r}. Give all "
        "training examples to nlp.initialize(lambda: examples), without a random augmenter; or set "
        "on_batches = true in [components.{name}.solver], with a solver that learns from batches, "
        "such as spacy_sparsecrf.SGDL1.v1."
    )
    SCW208 = (
        "Component '{name}': {n_lost} of {n_gold} gold labels ({share:.1%}) are lost, since "
        "predicted tokens are not cut as gold tokens are: first that of {word!r} in the Doc that "
        "begins {text!r}. Check the tokenizer ([nlp.tokenizer]), and the spaces between the words "
        "of the corpus; or set gold_preproc = true in [corpora.train] to train on gold tokens."
    )
    SCW209 = (
        "Component '{name}' goes through the whole corpus in each step, but is evaluated after "
        "every {n} steps only, and stopped late. Begin with a config of `python -m spacy_sparsecrf "
        "config`, or change two lines of this one:\n[training]\neval_frequency = 1\npatience = 5"
    )
    SCW210 = (
        "Compiled kernels in {directories} are left alone, as others may write there: they are "
        "code that would run as you. Take that right away (chmod go-w), or set the environment "
        "variable NUMBA_CACHE_DIR to a directory of your own."
    )
    SCW211 = (
        "{n} active tests have no names, so the word classes with prune = true in "
        "[components.NAME.features.clusters] are saved whole. Set names = true in "
        "[components.NAME], and train again, to have them pruned."
    )
    SCW212 = (
        "Component '{name}' was loaded with its weights and goes on from them by learning from "
        "batches, but the first of these has one example. If the batcher is "
        "spacy_sparsecrf.one_step_per_epoch.v1, it sees no others: choose one of spaCy's batchers "
        "([training.batcher]); or learn from the whole corpus, with factory instead of source, and "
        "the saved pipeline as [components.{name}.learning] prior; or freeze the component."
    )
    SCW340 = (
        'With [components.NAME] model = "maxent" labels do not depend on each other: the {n} tests '
        "that templates conjoin with pairs of labels are left out. Remove b: templates and write "
        'u: for *: in [components.NAME.features] templates, or set model = "memm" or "chain".'
    )
    SCW350 = (
        "[components.{name}.learning] constrained = true changes nothing: all sequences of the "
        "labels are legal. Name transitions in [components.{name}.decoding] forbidden or allowed, "
        "choose a target with a scheme, or set constrained = false."
    )
    SCW351 = (
        "[components.{name}.learning] has settings that are no longer known: {unknown}. What was "
        "trained with them predicts as before, but cannot be trained again: remove them."
    )
    SCW370 = (
        "The inference of {n} of {of} graphs has not converged after {limit} iterations (the "
        "largest change was {change:.2g}): their log Z and probabilities are not those of a fixed "
        "point. Raise damping (such as 0.5) or limit; very large weights may be the reason."
    )
    SCW401 = (
        "{n} sequences have no path through the labels that are set or permitted without a "
        "transition that is not allowed ([components.NAME.decoding], and the target's scheme). "
        "What is set is kept, with as few such transitions as can be. Correct the annotation that "
        "the Docs come with, or set [components.NAME] overwrite = true."
    )
    SCW402 = (
        "{n} tokens have no permitted label: what they are annotated with is no label of the "
        "component. They are decoded as if nothing was set. Correct the annotation that the Docs "
        "come with, or set [components.NAME] overwrite = true."
    )
    SCW601 = (
        "The file `names` of a component cannot be read ({reason}): tests are called by their "
        "hashes. Copy it again; a component works without it."
    )
    SCW701 = (
        "At l1 = {l1:g} the solver was stopped after {n} outer iterations, before it had converged "
        "(optimality {optimality:.2g}). Raise [training] max_steps, or set it to 0."
    )
    SCW801 = (
        "{name} was stopped by max_iterations = {n} before it had converged (optimality "
        "{optimality:.2g}). Raise max_iterations, or set it to None."
    )
