"""Errors of decoding and probabilities."""


class DecodingErrors:
    """Messages, see `errors.Errors`."""

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
