"""Messages about parts that others may have made."""


class CheckErrors:
    """Messages about features, targets, solvers and losses as parts: SC66x."""

    SC660 = "{part} does not keep what its interface promises: {fact}."
    SC661 = "{part} does not keep what its interface promises: {fact} ({got} and not {expected})."
    SC662 = (
        "[components.{name}.{key}] is a {found}, which is no part of that kind. Choose one that is "
        "registered for it: @crf_{key} = ..., or @crf_{key}s = ... for others."
    )
