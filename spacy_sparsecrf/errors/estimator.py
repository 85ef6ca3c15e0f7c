"""Errors of the estimator, which learns from sequences of features without Docs."""


class EstimatorErrors:
    """Messages, see `errors.Errors`."""

    SC801 = (
        "{place} cannot be read ({reason}). X is a list of sequences, a sequence a list of tokens, "
        "and a token a dict of strings, numbers, truth values, or lists, sets and dicts of such, "
        "or a list of strings, or one string."
    )
    SC802 = (
        "X has {n_sequences} sequences, but {name} has {found}. Give one {each} for each sequence."
    )
    SC803 = (
        "X[{number}] has {n_tokens} tokens, but y[{number}] has {n_labels} labels. Give one label "
        "for each token, None where it is not known."
    )
    SC804 = "y[{number}][{token}] is {label!r}, which is no label. Labels are strings, or None."
    SC805 = (
        "This {name} has learnt nothing yet. Call fit(X, y) first, or from_pipe with a trained "
        "component."
    )
    SC806 = (
        "{name} has no partial_fit: the minimum that it finds is that of all sequences at once. "
        "Call fit with all of them."
    )
    SC807 = (
        "The solver {value!r} is not known. Give the name of one, such as {known}, or a solver "
        "itself, such as OWLQN(tolerance=1e-4)."
    )
    SC808 = (
        "{n_values} features have numbers other than 0 and 1, which takes {needed} MB for "
        "{n_tokens} tokens, and {available} MB are available. Give numbers in bins, as strings."
    )
    SC809 = "{name} = {value!r} cannot be ({reason})."
    SC810 = (
        "{n} features that have weights are no tests of templates: {shown}. A component reads "
        "features by templates only: name the test that is each of them by `tests` (--tests), as "
        'in {{"word.lower()": "lower[0]", "BOS": "lower[-1]=^1"}}, or fit without them.'
    )
    SC811 = (
        "{first!r} and {second!r} are both the test {name}, which has one weight for each label. "
        "Name another test for one of them, or fit without it."
    )
    SC812 = (
        "The tests of component '{name}' cannot be features of an estimator: some have no names, "
        "or are numbers. Train with names = true in [components.{name}], and without value(...) "
        "and vector in templates."
    )
    SC813 = (
        "algorithm = {value!r} is not that of CRF: it minimises CRFsuite's objective, as lbfgs and "
        "l2sgd do. For others see the solvers of SparseCRF, such as Perceptron."
    )
