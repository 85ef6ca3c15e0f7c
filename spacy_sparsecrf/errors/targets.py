"""Errors of targets: annotation as labels."""


class TargetErrors:
    """Messages, see `errors.Errors`."""

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
