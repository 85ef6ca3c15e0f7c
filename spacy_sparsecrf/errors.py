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
        "Set [training] max_epochs = 0 and stop by patience or max_steps."
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
    SC325 = (
        "The solver setting {key} = {value!r} is not known. Change [components.NAME.solver] {key} "
        "to one of: {known}."
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

    # SCW7xx: regularisation path
    SCW701 = (
        "At l1 = {l1:g} the solver was stopped after {n} outer iterations, before it had converged "
        "(optimality {optimality:.2g}). Raise [training] max_steps, or set it to 0."
    )
