"""Errors of corpora, losses, solvers, model files, and of what is learnt."""


class NumericErrors:
    """Messages, see `errors.Errors`."""

    SC301 = (
        "The corpus has {n} distinct observation tests; at most 2147483647 can be numbered. Use "
        "fewer or shorter conjunctions in [components.NAME.features] templates."
    )
    SC302 = "A corpus without any sequence was given: there is nothing to learn from."
    SC303 = (
        "The penalty {key} = {value} is not a finite number >= 0. Change [components.NAME] "
        "{key} (defaults: l1 = 0.1, l2 = 0.3; of entities 0.2 and 1)."
    )
    SC304 = "[components.NAME] n_threads = {value} is negative: give a number, or 0 for one a core."
    SC305 = (
        "No token of the training corpus has a gold label. Check that the annotation named in "
        "[components.NAME.target] is in the training data and aligned with its tokens."
    )
    SC306 = "[components.NAME.solver] {key} = {value} is too low: it must be at least {low}."
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
        "The solver {solver} works on chains only. For graphs, choose another [components.NAME."
        "solver]: OWLQN.v1, RPROP.v1, SGDL1.v1, SGD.v1, AdaGrad.v1, SMD.v1 or Hybrid.v1 of "
        "spacy_sparsecrf."
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
        "[components.NAME] clusters = 0; or learn from the whole corpus, by [components.NAME."
        "solver] on_batches = false and [training] max_epochs = 0."
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
        "The solver {solver} cannot learn the weights of real-valued features ([components.NAME"
        ".features] templates with vector or value(...)). Choose a [components.NAME.solver] that "
        "can: spacy_sparsecrf.OWLQN.v1, spacy_sparsecrf.RPROP.v1 or spacy_sparsecrf.NewtonCG.v1; "
        "or read vectors in bins, as in vector(2)."
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
        "again. Set [components.NAME.solver] @crf_solvers to spacy_sparsecrf.OWLQN.v1, or, with "
        "l1 = 0, to spacy_sparsecrf.NewtonCG.v1."
    )
    SC416 = (
        "The templates of component '{name}' read {reads}, which a first model says, but there is "
        'none. Set [components.{name}.learning] stack = {{"folds": 5}}, or remove them.'
    )
    SC411 = (
        "[components.{name}.learning] stack asks for a first model, of which no template reads "
        "anything. Add some to [components.{name}.features] templates, such as "
        '"u:first[0]" and "u:doc_majority[0]"; or set stack = {{}}.'
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
