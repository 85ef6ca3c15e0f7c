"""Errors of the component, its parts and its training loop, of decoding, and of targets."""


class ComponentErrors:
    """Messages, see `errors.Errors`."""

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
        "{key} = {path} has no weights for component '{name}'. Give a saved pipeline with a "
        "component of that name, the directory of one component, or its file `model`. Looked for: "
        "{tried}."
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
    SC213 = "Component '{name}' cannot have {n} outputs: it has {n_labels} labels. Use add_label."
    SC214 = "[components.NAME.target] attr = {attr!r} cannot be predicted. Choose one of: {known}."
    SC215 = (
        "{label!r} cannot be written to token.pos: it is not a universal part of speech. "
        'Choose one of: {known}; or write it as a tag, [components.NAME.target] attr = "tag".'
    )
    SC216 = (
        "Component '{name}' is initialized with a function that returns Example objects, but "
        "got {got}. Call nlp.initialize(lambda: examples)."
    )
    SC217 = "Component '{name}' got no examples at all. Check the path of [training] train_corpus."
    SC218 = (
        "The batcher spacy_sparsecrf.one_step_per_epoch.v1 got a training corpus without "
        "examples. Check the path of [training] train_corpus."
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
        "[components.{name}{key} does not go together with model: edges other than ['chain'] "
        "need model = 'graph', which tells probabilities of single tokens, and none of spans. "
        "Change one of the two."
    )
    SC237 = "[components.{name}.inference] has unknown settings: {unknown}. Choose from: {known}."
    SC401 = "[components.{name}.decoding] has unknown settings: {unknown}. Choose from: {known}."
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
        "The gold value {value!r} of token.{attr} is not a string. Make the values of the "
        "training Docs strings; None or an empty string is no label. The text begins: {text!r}."
    )
    SC508 = '[components.NAME.target] key is empty. Name the group of doc.spans, such as "sc".'
    SC509 = "Component '{name}' learns labels of tokens, not of spans. Ask for span_probabilities."
    SC660 = "{part} does not keep what its interface promises: {fact}."
    SC661 = "{part} does not keep what its interface promises: {fact} ({got} and not {expected})."
    SC662 = (
        "[components.{name}.{key}] is a {found}, which is no part of that kind. Choose one that is "
        "registered for it: @crf_{key} = ..., or @crf_{key}s = ... for others."
    )
