"""Families of templates that test windows of tokens, written `ngrm(n, attribute)`.

They are the feature sets of Lavergne et al. (2010), section 5.1.1, for odd n: `n-grm` tests the
windows of 0, 1, 3, .., n tokens with the current one in the middle, `n-grm-` only the longest of
them; `n-grm+` adds the windows of 2, 4, .., n - 1 tokens in the two places where they are as good
as centred; `n-grm++` has every window inside the longest. A window is where it is: the same tokens
at another distance are another test.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .templates import _Reader

FAMILY = "ngrm"
LONGEST = 99  # tokens of a window: `++` has n (n + 1) / 2 of them


def windows(n: int, variant: str = "") -> list[range]:
    """Offsets of the tokens of each window of a family.

    n: odd, tokens of the longest window; variant: "", "-", "+" or "++".
    """
    half = n // 2
    if variant == "-":
        return [range(-half, half + 1)]
    found = [range(0)]
    for length in range(1, n + 1):
        if variant == "++":
            begins = range(-half, half + 2 - length)
        elif length % 2:
            begins = range(-(length // 2), 1 - length // 2)
        else:
            # The current token stands right or left of the middle.
            begins = range(-(length // 2), 2 - length // 2) if variant == "+" else range(0)
        found += [range(begin, begin + length) for begin in begins]
    return found


def parse_length(reader: "_Reader") -> int:
    """Parse `n`, the tokens of the longest window."""
    start = reader.at
    what = f"an odd length, a whole number from 1 to {LONGEST}"
    n = reader.take_integer(1, what)
    if n % 2 == 0 or n > LONGEST:
        reader.at = start
        reader.fail(what)
    return n


def parse_variant(reader: "_Reader") -> str:
    """Parse what stands behind a family: "", "-", "+" or "++"."""
    variant = reader.take_char("+-")
    return variant + reader.take_char("+") if variant == "+" else variant
