"""Messages of checks of parts that others have made."""


class CheckErrors:
    """Messages of the room `testing`: SC66x."""

    SC660 = "{part} does not keep what its interface promises: {fact}."
    SC661 = "{part} does not keep what its interface promises: {fact} ({got} and not {expected})."
