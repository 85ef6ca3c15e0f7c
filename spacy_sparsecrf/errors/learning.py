"""Errors of what is learnt of a corpus, and training on batches."""


class LearningErrors:
    """Messages, see `errors.Errors`."""

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
