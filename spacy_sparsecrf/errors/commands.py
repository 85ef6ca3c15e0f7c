"""Errors of explaining, patching, converting, and the regularisation path."""


class CommandErrors:
    """Messages, see `errors.Errors`."""

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
