"""Errors of templates, pattern files, values and vectors."""


class FeatureErrors:
    """Messages, see `errors.Errors`."""

    SC101 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, is malformed "
        "at character {position}: expected {expected}; found {found}."
    )
    SC102 = (
        "[components.NAME.features] templates = {value!r} is not a list of strings. Write it as "
        '["u:lower[0]", "b:"], or leave it out for the default.'
    )
    SC103 = (
        "[components.NAME.features] templates is empty. Name at least one, such as "
        '["u:lower[0]", "b:"], or leave it out for the default.'
    )
    SC104 = (
        "Template {second} of [components.NAME.features] templates, {second_text!r}, repeats "
        "template {first}, {first_text!r}: both test the same with {conjoined}. Remove one."
    )
    SC105 = "[components.NAME] sequences = {value!r} is not known. Change it to one of: {known}."
    SC110 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, has a regular "
        "expression, for which the package `regex` is needed and missing. Install it: "
        "pip install spacy-sparsecrf[regex]."
    )
    SC111 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, has a malformed "
        "regular expression: {reason}, at character {position} of the template."
    )
    SC112 = (
        "The regular expression of template {number} of [components.NAME.features] templates, "
        "{template!r}, took more than {seconds} s to search the word {text!r}: it tries very many "
        "ways to match. Rewrite it without repeating what matches in several ways, such as "
        "(a|aa)+, or with possessive quantifiers, such as a++."
    )
    SC120 = (
        "[components.NAME.features] templates read the extension attribute token._.{name}, which "
        "is not registered. Register it before the pipeline is used: "
        'spacy.tokens.Token.set_extension("{name}", default=None).'
    )
    SC121 = (
        "[components.NAME.features] templates read token._.{name}, which is a {kind} at the token "
        "{text!r}. They can read a string, an integer, a truth value, or None for no value."
    )
    SC125 = (
        "[components.NAME.features] templates read token.vector, but the pipeline has no vectors. "
        "Give it some ([initialize] vectors = path), put a tok2vec pipe before this one and name "
        "it in [training] annotating_components, or remove `vector` from the templates."
    )
    SC126 = (
        "[components.NAME.features] templates read vectors of {trained} dimensions in training, "
        "but now one of {found}. Load the pipeline with the vectors that it was trained with."
    )
    SC127 = (
        "[components.NAME.features] templates read token.vector, which is not finite at the token "
        "{text!r} of the Doc that begins {doc!r}. Repair or replace [initialize] vectors."
    )
    SC130 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, is {n} tests at "
        "each token: all combinations of the values that its attributes can have. At most {most} "
        "are possible. Conjoin fewer attributes with several values."
    )
    SC131 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, reads the "
        "phrases {name!r}, which are not in [components.NAME.features] phrases. Known: {known}."
    )
    SC132 = (
        "[components.NAME.features] phrases = {value!r} is not valid: it must map names to files "
        'or to lists of phrases, as {{"cities": "cities.txt", "titles": ["Dr.", "Prof."]}}.'
    )
    SC133 = "[components.NAME.features] phrase_attr = {value!r} is not known. Use one of: {known}."
    SC134 = (
        "The file {path}, named in [components.NAME.features] phrases {name!r}, cannot be read: "
        "{reason}. Give the path of a UTF-8 text file with one phrase a line."
    )
    SC135 = (
        "Line {line} of the file {path}, named in [components.NAME.features] phrases {name!r}, is "
        "not UTF-8. Convert the file to UTF-8."
    )
    SC136 = (
        "[components.NAME.features] phrases {name!r} has no phrases. Fill the list or the file, "
        "or remove it and the templates that read it."
    )
    SC137 = (
        "What was saved with the pipeline does not fit its [components.NAME.features]: "
        "{reason}. Restore `cfg` and config.cfg from one saved pipeline, or train it again."
    )
    SC140 = (
        "[components.NAME.features] clusters: {value!r} is not valid. By name there must be one of "
        '{{"path": "paths.txt", "format": "brown"}}, where the format is "brown" or "word2vec", '
        '{{"lookups": "lexeme_cluster"}}, with "lang" if that is not the pipeline\'s, and '
        '{{"pipeline": "path"}}, with "component" and "name" if needed; and "prune": true for any.'
    )
    SC141 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, reads the word "
        "classes {name!r}, which are not in [components.NAME.features.clusters]. Known: {known}."
    )
    SC142 = (
        "{path}, named in [components.NAME.features.clusters] {name!r}, cannot be read: {reason}. "
        "Give the path of a file of word classes, or of a saved pipeline that has some."
    )
    SC143 = (
        "Line {line} of the file {path}, named in [components.NAME.features.clusters] {name!r}, "
        "is malformed: {reason}. Mend it, or change `format`."
    )
    SC144 = (
        "[components.NAME.features.clusters] {name!r} has no words. Fill it, or remove it and the "
        "templates that read it."
    )
    SC145 = (
        "[components.NAME.features.clusters] {name!r}: there is no table {table!r} of lookups of "
        "the language {lang!r}. Install it: pip install spacy-sparsecrf[clusters], which has "
        "the table lexeme_cluster for de, en and es; or give the words as a file."
    )
    SC146 = (
        "[components.NAME.features.clusters] {name!r}: the table {table!r} of lookups does not map "
        "words to whole numbers that are not negative. Name a table of word classes."
    )
    SC147 = (
        "Template {number} of [components.NAME.features] templates, {template!r}, reads bits of "
        "the word classes {name!r}, which are numbers without meaningful bits. Read the whole "
        'class: cluster("{name}").'
    )
    SC148 = (
        "The file `clusters` of a component is damaged: {reason}. Restore it from where the "
        "pipeline was saved, or train the pipeline again."
    )
    SC150 = (
        "[components.NAME.features] boundaries = {value!r} is not valid: it must be a whole number "
        "from 0, how many distances from a sequence are told apart, or left out for all."
    )
    SC151 = (
        "{source}, line {line}: {text!r} is malformed at character {position}: expected "
        "{expected}; found {found}."
    )
    SC152 = (
        "{source}, line {line}: {text!r} reads column {column}, but [components.NAME.features] "
        "columns names {n}, which are columns 0 to {last}. Name all columns that patterns read."
    )
    SC153 = "{source} has no patterns: every line is empty or a comment. Give a file of {program}."
    SC154 = (
        "{source}, line {line}: {text!r} has a malformed regular expression, {expression!r}, "
        "behind character {position}: {reason}."
    )
    SC155 = "[components.NAME.features] needs either path, a pattern file, or text, the patterns."
    SC156 = (
        "{source} has regular expressions, for which the package `regex` is needed and missing. "
        "Install it: pip install spacy-sparsecrf[regex]."
    )
    SC157 = (
        "[components.NAME.features] columns = {value!r} is not a list of attributes. Write, for "
        'instance, ["orth", "tag"]: what the columns that patterns read are, from column 0.'
    )
    SC158 = (
        "[components.NAME.features] columns: column {number}, {column!r}, is not an attribute of "
        'tokens, such as "orth" or "tag": {reason}'
    )
    SC159 = "Pattern file {path} cannot be read: {reason}. Change [components.NAME.features] path."
    SC160 = "{path}, line {line}: byte {byte:#04x} is not UTF-8. Convert it, for instance by iconv."
    SC161 = (
        "The regular expression {expression!r} of a pattern took more than {seconds} s to search "
        "the text {text!r}: it tries very many ways to match. Write it with fewer repetitions."
    )
