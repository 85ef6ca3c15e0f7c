/* Label texts with an exported model: one file without dependencies, for Node 20 and browsers.

    const model = new Model(readFileSync("model.json", "utf8"));
    const labelled = model.label("Maria Lopez flew to Lisbon.");
    labelled.spans                                   // start, end, label, text, score
    labelled.tokens                                  // text, start, end, label, probability
    model.explain("Maria Lopez flew to Lisbon.", 0)  // features of a token, and their weights

`python -m spacy_sparsecrf export PIPELINE FOLDER --format portable` writes this file, and crf.py,
whose parts have the same names and order. The answers are those of the pipeline. Offsets count
UTF-16 units, by which JavaScript slices. docs/portable.md describes the fields of model.json. */

const FORMAT = "spacy-sparsecrf portable 1";
const MOST_CACHED = 20_000; // distinct words, pieces of text and matrices
const MOST_STATES = 2048; // of the search for paths that repeat no name
const TINY = 1e-300; // sum of paths that are too improbable for numbers
const REPEATED = 1e9; // cost of a repetition, far above differences between scores of paths

// Characters as Python's `isspace`, `splitlines`, `isdigit`, `isupper`, `istitle`, `islower` do
const SPACE = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const SPACES = new RegExp(`^[${SPACE}]+$`);
const PIECES = new RegExp(`[${SPACE}]+|[^${SPACE}]+`, "g");
const LINES = /\r\n|[\n-\r\x1c-\x1e\x85\u2028\u2029]/g;
const DIGITS = new RegExp(
  "^[\\p{Nd}²³¹\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-" +
    "\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788" +
    "\\u278a-\\u2792" +
    "\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}]+$",
  "u",
);
const UPPER = /\p{Uppercase}/u;
const CAPITAL = /[\p{Uppercase}\p{Lt}]/u;
const LOWER = /(?![\u10fc\ua7f2-\ua7f4\uab69])[\p{Lowercase}\u0295]/u; // as in Unicode 13
const SPELLED = { "\\d": "\\p{Nd}", "\\s": SPACE, "\\w": "\\p{L}\\p{N}_", "\\Z": "$" };

/** Return an expression of model.json: \d, \s, \w, \Z and $ mean what they do in Python. */
function expression(text, flags = "u") {
  const spelled = (part) => (part === "$" ? "(?=\\n?$)" : SPELLED[part] ?? part);
  return new RegExp(text.replace(/\\.|\$/gsu, spelled), flags);
}

/** Return a function that keeps its values. */
function cached(compute) {
  const values = new Map();
  return (key) => {
    let value = values.get(key);
    if (value === undefined) {
      if (values.size >= MOST_CACHED) values.clear();
      value = compute(key);
      values.set(key, value);
    }
    return value;
  };
}

/** spaCy's tokenizer. Arguments: of `tokenizer` in a model. */
class Tokenizer {
  constructor({ patterns, rules, matched }) {
    const anchored = (name, x) => (name === "token" || name === "url" ? `^(?:${x})` : x);
    this.patterns = {};
    for (const [name, text] of Object.entries(patterns))
      this.patterns[name] = expression(anchored(name, text), name === "infix" ? "gu" : "u");
    this.rules = new Map(Object.entries(rules));
    this.matched = new Map(Object.entries(matched));
    this.texts = cached((text) => this.split(text));
  }

  /** Split a text at blanks, then each piece, then apply special cases of several tokens. */
  tokens(text) {
    const tokens = [];
    for (const { 0: piece, index: start } of text.matchAll(PIECES)) {
      // One space belongs to the token before it, and other blanks are tokens.
      const skipped = piece[0] === " " && tokens.length ? 1 : 0;
      tokens.push(...placed(this.texts(piece.slice(skipped)), start + skipped));
    }
    return this.withRules(text, tokens);
  }

  /** Split a piece of text without spaces: affixes, then special cases, URLs and infixes. */
  split(text) {
    const { prefix, suffix, token } = this.patterns;
    const [prefixes, suffixes] = [[], []];
    while (text && !token.test(text) && !this.rules.has(text)) {
      let head = matched(prefix, text).length;
      const ahead = text.slice(head);
      const tail = this.rules.has(ahead) ? 0 : matched(suffix, ahead).length;
      if (tail && this.rules.has(text.slice(0, -tail))) head = 0;
      if (head === 0 && tail === 0) break;
      const end = text.length - tail;
      prefixes.push(text.slice(0, head));
      suffixes.unshift(text.slice(end));
      text = text.slice(head, end);
    }
    return [...prefixes, ...this.inner(text), ...suffixes].filter(Boolean);
  }

  /** Split a piece without affixes. */
  inner(text) {
    if (this.rules.has(text)) return this.rules.get(text);
    if (this.patterns.token.test(text) || this.patterns.url.test(text)) return [text];
    const texts = [];
    let end = 0;
    for (const { 0: infix, index: start } of text.matchAll(this.patterns.infix)) {
      if (!start) continue;
      texts.push(text.slice(end, start), infix);
      end = start + infix.length;
    }
    return [...texts, text.slice(end)];
  }

  /** Apply special cases to tokens: the longest, then leftmost, which hide what they overlap.
   *  A special case hides others also if it is hidden itself. */
  withRules(text, tokens) {
    const matches = tokens.flatMap((token, i) =>
      (this.matched.get(token.text) ?? [])
        .filter((texts) => texts.every((x, k) => x === tokens[i + k]?.text))
        .map((texts) => [i, i + texts.length]),
    );
    const covered = new Set();
    const parts = [];
    for (const [i, j] of matches.sort((a, b) => a[0] - a[1] - (b[0] - b[1]) || a[0] - b[0])) {
      const rule = this.rules.get(text.slice(tokens[i].start, tokens[j - 1].end));
      if (rule && !covered.has(i) && !covered.has(j - 1)) parts.push([i, j, rule]);
      for (let k = i; k < j; k++) covered.add(k);
    }
    for (const [i, j, rule] of parts.sort((a, b) => b[0] - a[0]))
      tokens.splice(i, j - i, ...placed(rule, tokens[i].start));
    return tokens;
  }
}

/** Return what an expression matches in a text, "" for nothing. */
function matched(pattern, text) {
  return pattern.exec(text)?.[0] ?? "";
}

/** Return adjacent tokens. A blank has the label of blanks and probability 1. */
function placed(texts, start) {
  return texts.map((text) => {
    start += text.length;
    return { text, start: start - text.length, end: start, label: "", probability: 1 };
  });
}

// Attributes of words

/** Return a text without case. */
function casefold(text) {
  const lower = (x) => x.toLowerCase().toUpperCase().toLowerCase();
  const isCherokee = (x) => /[\u13a0-\u13fd\uab70-\uabbf]/.test(x);
  const folded = (x) => (isCherokee(x) ? x.toUpperCase() : x === "ı" ? x : lower(x));
  return Array.from(text, folded).join("");
}

/** Return a text without accents and case. */
function fold(text) {
  // Combining characters change places with U+0345, which has the highest combining class.
  const isCombining = (x) => x === "\u0345" || ("\u0345" + x).normalize("NFD")[0] === x;
  return casefold(Array.from(text.normalize("NFKD")).filter((x) => !isCombining(x)).join(""));
}

/** Return spaCy's shape of a word: Xxxxx, dd.d; at most four equal characters in a row. */
function shape(text) {
  const letter = (x) => (UPPER.test(x) ? "X" : "x");
  const chars = Array.from(text, (x) => (/\p{L}/u.test(x) ? letter(x) : DIGITS.test(x) ? "d" : x));
  return chars.length >= 100 ? "LONG" : chars.join("").replace(/(.)\1{4,}/gsu, "$1$1$1$1");
}

/** Return whether a word is a number: of digits, a fraction, an ordinal, or in a list.
 *  words, endings: of the language, of ordinals such as 2nd; sign: that may end a number. */
function likeNum(text, words, endings, sign) {
  const without = (x, end) => (end && x.endsWith(end) ? x.slice(0, -end.length) : x);
  text = without(text.replace(/^[-+±~]/, ""), sign).replace(/[,.]/g, "").toLowerCase();
  const parts = text.split("/");
  const isNumber = words.includes(text) || (parts.length < 3 && parts.every((x) => DIGITS.test(x)));
  return isNumber || endings.some((ending) => DIGITS.test(without(text, ending)));
}

/** Return the distinct n-grams of a word between marks; a long word has those of its ends. */
function ngrams(text, low, high, marks) {
  const chars = Array.from(text);
  const pieces = chars.length > 20 ? [chars.slice(0, 10), chars.slice(-10)] : [chars];
  pieces[0].unshift(...marks.slice(0, 1));
  pieces.at(-1).push(...marks.slice(1));
  const found = new Set();
  for (let n = low; n <= high; n++) {
    for (const piece of pieces)
      for (let i = 0; i + n <= piece.length; i++) found.add(piece.slice(i, i + n).join(""));
  }
  return [...found].join("\n");
}

/** Return whether capitals begin words, and nothing else does. */
function isTitle(text) {
  let wasCased = false;
  for (const char of text) {
    const isCapital = CAPITAL.test(char);
    const isCased = isCapital || LOWER.test(char);
    if (isCased && isCapital === wasCased) return false;
    wasCased = isCased;
  }
  return CAPITAL.test(text);
}

/** Return spaCy's hash of a string, hexadecimal: MurmurHash64A of its UTF-8 with seed 1. */
function stringHash(text) {
  const [data, factor] = [new TextEncoder().encode(text), 0xc6a4a7935bd1e995n];
  const times = (x) => BigInt.asUintN(64, x * factor);
  let value = 1n ^ times(BigInt(data.length));
  for (let i = 0; i < data.length; i += 8) {
    let block = data.slice(i, i + 8).reduceRight((sum, x) => (sum << 8n) | BigInt(x), 0n);
    if (i + 8 <= data.length) {
      block = times(block);
      block = times(block ^ (block >> 47n));
    }
    value = times(value ^ block);
  }
  value = times(value ^ (value >> 47n));
  return (value ^ (value >> 47n)).toString(16);
}

/** Return the class of a word, or else of its form in lower case, or its leading bits.
 *  classes: by hash of words. */
function classOf(text, classes, bits) {
  const name = classes.get(stringHash(text)) ?? classes.get(stringHash(text.toLowerCase()));
  return (name ?? "").slice(0, bits ?? undefined);
}

/** Return the labels of a word in the training data. */
function labelsOf(text, classes) {
  const form = /^\p{L}+$/u.test(text) ? text : text.replace(/\p{Nd}/gu, "0");
  return classOf(form.toLowerCase(), classes);
}

/** Return the characters of a word between two positions, nothing of one with less than n. */
function affix(text, n, start, end) {
  const chars = Array.from(text);
  return chars.length >= n ? chars.slice(start, end).join("") : "";
}

const search = cached((pattern) => expression(pattern));

/** Attributes of a word, called with the word and the arguments in the model. */
const ATTRIBUTES = {
  orth: (text) => text,
  lower: (text) => text.toLowerCase(),
  ...{ casefold, fold, shape, is_title: isTitle, like_num: likeNum, ngrams },
  ...{ cluster: classOf, word_labels: labelsOf },
  length: (text) => Array.from(text).length,
  is_alpha: (text) => /^\p{L}+$/u.test(text),
  is_ascii: (text) => /^[\0-\x7f]*$/.test(text),
  is_digit: (text) => DIGITS.test(text),
  is_lower: (text) => LOWER.test(text) && !CAPITAL.test(text),
  is_upper: (text) => UPPER.test(text) && !LOWER.test(text) && !/\p{Lt}/u.test(text),
  short_shape: (text) => shape(text).replace(/(.)\1+/gsu, "$1"),
  is_punct: (text) => /^\p{P}+$/u.test(text),
  has_digit: (text) => Array.from(text).some((x) => DIGITS.test(x)),
  has_upper: (text) => UPPER.test(text),
  prefix: (text, n) => affix(text, n, 0, n),
  suffix: (text, n) => affix(text, n, -n),
  regex: (text, pattern) => search(pattern).test(text),
  match: (text, pattern) => matched(search(pattern), text),
};

/** Return whether the next word begins where a word ends. */
function glued(words) {
  return words.map((word, t) => word.end === words[t + 1]?.start);
}

/** Return B, I, L or U of words in the longest phrases of a list.
 *  phrases: their types, by words joined by tabs; attr: by which words are compared. */
function phraseMarks(words, breaks, phrases, attr, longest) {
  const texts = words.map((word) => ATTRIBUTES[attr](word.text));
  const marks = texts.map(() => "");
  for (let n = longest; n > 0; n--) {
    for (let i = 0; i + n <= texts.length; i++) {
      const kind = phrases.get(texts.slice(i, i + n).join("\t"));
      if (kind === undefined || marks[i] || marks[i + n - 1]) continue;
      const signs = n > 1 ? `B${"I".repeat(n - 2)}L` : "U";
      for (let k = 0; k < n; k++) marks[i + k] = kind ? `${signs[k]}-${kind}` : signs[k];
    }
  }
  return marks;
}

/** Return the positions (B, I, L, U) that words have elsewhere in runs of capitalised words. */
function runsElsewhere(words, breaks) {
  const lowers = words.map((word) => word.text.toLowerCase());
  const follows = (t, signs) => [...signs].includes(lowers[t - 1]);
  const begins = breaks.map((n, t) => !t || n === 2 || follows(t, ".!?…"));
  const isFirst = begins.map((begin, t) => begin || follows(t, ":¿¡-–—•*'\"“«"));
  const cases = words.map(({ text }, t) => (text === lowers[t] ? 0 : 2 - isFirst[t]));
  const inside = (x, t) => (x === 2 && cases[t - 1] > 0) + 2 * (cases[t + 1] === 2);
  const positions = cases.map((x, t) => (x ? inside(x, t) : -1));
  const counts = new Map();
  const count = (t, k) => counts.get(`${k} ${lowers[t]}`) ?? 0;
  positions.forEach((k, t) => counts.set(`${k} ${lowers[t]}`, count(t, k) + 1));
  const isUsed = begins.filter(Boolean).length > 1;
  const signs = Object.entries({ B: 2, I: 3, L: 1, U: 0 });
  const elsewhere = (at, t) => signs.filter(([, k]) => count(t, k) > (k === at));
  return positions.map((at, t) =>
    (isUsed && at >= 0 ? elsewhere(at, t) : []).map(([sign]) => sign).join(""),
  );
}

/** Attributes of all words, called with the words, the line breaks before them, and arguments. */
const CONTEXTUAL = {
  break: (words, breaks) => breaks,
  ...{ glued, phrase: phraseMarks, doc_run: runsElsewhere },
};
const LISTED = ["cluster", "word_labels", "phrase"]; // whose first argument is the key of a list

// Features

/** Return a value of an attribute as in features, "" for none. */
function written(value) {
  return typeof value === "string" ? value : value ? `${+value}` : "";
}

/** The attributes, templates and weights of a model. model: the fields of model.json. */
class Features {
  constructor(model) {
    Object.assign(this, { model, nLabels: model.labels.length });
    const listed = ([name, texts]) => texts.split("\n").map((text) => [text, name]);
    const list = (key) => new Map(Object.entries(model.lists[key]).flatMap(listed));
    this.calls = model.attributes.map(([name, ...values]) =>
      LISTED.includes(name) ? [name, list(values[0]), ...values.slice(1)] : [name, ...values],
    );
    const template = ([name, reads, weights]) => [name, reads, new Map(Object.entries(weights))];
    for (const kind of ["near", "wide", "bigrams"]) this[kind] = model[kind].map(template);
    this.offsets = [...new Set(this.near.map(([, reads]) => reads[0][1]))];
    this.weights = cached((text) => this.readWeights(text));
    this.word = cached((text) => this.readWord(text));
    this.pairsOf = cached((present) => this.sumPairs(present));
  }

  /** Return the labels, or the numbers of label pairs, and weights of a feature. */
  readWeights(text) {
    const numbers = text.split(" ").map(Number);
    const [labels, values] = [0, 1].map((odd) => numbers.filter((_, i) => i % 2 === odd));
    return { labels, values: this.model.type === "f" ? values.map(Math.fround) : values };
  }

  /** Read the tokens of a text.
   *  words: the tokens that are no blanks; breaks: line breaks before them, at most 2; contents: of
   *  words and the positions outside the text; columns: values that depend on other words. */
  read(tokens) {
    const outside = (sign, n) => this.word(` ${sign}${Math.min(n, this.model.edges)}`);
    const distances = Array.from({ length: this.model.margin }, (_, i) => i + 1);
    const contents = distances.map((n) => outside("^", n)).reverse();
    const [words, breaks] = [[], []];
    let nBreaks = -Infinity; // blanks at the beginning of a text do not count
    for (const token of tokens) {
      const word = this.word(token.text);
      nBreaks += Math.max(word.nBreaks, 0);
      if (word.nBreaks >= 0) continue;
      words.push(token);
      breaks.push(Math.min(Math.max(nBreaks, 0), 2));
      contents.push(word);
      nBreaks = 0;
    }
    contents.push(...distances.map((n) => outside("$", n)));
    const columns = this.calls.map(([name, ...values]) =>
      CONTEXTUAL[name]?.(words, breaks, ...values).map(written),
    );
    return { tokens, words, breaks, contents, columns };
  }

  /** Read a word without characters that have no width, composed, or a position outside.
   *  nBreaks: of a blank, its line breaks, at most 2, or else -1; values: of attributes, several
   *  n-grams joined by line ends; sums: of the weights of features of this word, by offset. */
  readWord(text) {
    const visible = Array.from(text).filter((x) => !this.model.unseen.includes(x)).join("");
    const view = visible.normalize("NFC") || " ";
    if (SPACES.test(view)) return { nBreaks: Math.min((view.match(LINES) ?? []).length, 2) };
    const read = ([name, ...values]) => written(ATTRIBUTES[name]?.(view, ...values));
    const values = this.calls.map(text[0] === " " ? () => text : read);
    const sums = this.offsets.map(() => new Float64Array(this.nLabels));
    for (const [, [[number, offset]], weights] of this.near) {
      for (const value of values[number].split("\n"))
        this.add(weights.get(value), sums[this.offsets.indexOf(offset)], 0);
    }
    return { nBreaks: -1, values, sums };
  }

  /** Add the weights of a feature, if there are any, to scores from a place on. */
  add(text, scores, start) {
    if (!text) return;
    const { labels, values } = this.weights(text);
    for (let i = 0; i < labels.length; i++) scores[start + labels[i]] += values[i];
  }

  /** Sum the weights of labels at each word: [T, Y]. */
  scores(reading) {
    const n = this.nLabels;
    const scores = new Float64Array(reading.words.length * n);
    for (let t = 0; t < reading.words.length; t++) {
      this.offsets.forEach((offset, i) => {
        const sums = reading.contents[this.model.margin + t + offset].sums[i];
        for (let y = 0; y < n; y++) scores[t * n + y] += sums[y];
      });
      for (const template of this.wide) this.add(this.present(template, reading, t), scores, t * n);
    }
    return scores;
  }

  /** Return the scores of label pairs at each word. */
  pairs(reading) {
    return reading.words.map((_, t) => {
      const texts = this.bigrams.map((template) => this.present(template, reading, t));
      return this.pairsOf(texts.filter(Boolean).join(" "));
    });
  }

  /** Return names of features at a word, and the weights of labels. */
  named(reading, t) {
    const features = [...this.near, ...this.wide].flatMap(([name, reads, weights]) =>
      this.values(reads, reading, t).split("\n").map((x) => [name, x, weights.get(x)]),
    );
    const shown = (x) => (x ? `=${x.replaceAll("\t", "|").replaceAll(" ", "")}` : "");
    return features
      .filter(([, , text]) => text)
      .map(([name, values, text]) => [name + shown(values), this.weights(text)]);
  }

  /** Return the weights of a template's feature at a word, if it has any. */
  present([, reads, weights], reading, t) {
    return weights.get(this.values(reads, reading, t));
  }

  /** Return the values that a template reads at a word, joined by tabs. */
  values(reads, reading, t) {
    if (!reads.length) return "";
    let values = this.value(reads[0], reading, t);
    for (let i = 1; i < reads.length; i++) values += `\t${this.value(reads[i], reading, t)}`;
    return values;
  }

  /** Return the value that a template reads at a word. */
  value([number, offset, isPlace], { words, contents, columns }, t) {
    const place = offset + (isPlace ? (offset < 0 ? words.length : -1) : t);
    return columns[number]?.[place] ?? contents[this.model.margin + place].values[number];
  }

  /** Sum the weights of label pairs of features. */
  sumPairs(present) {
    const rows = Float64Array.from(this.model.valid.flat());
    this.add(present, rows, 0);
    return new PairTable(rows, this.nLabels);
  }
}

// Labels

/** Scores of label pairs, and their exponentials. n: Y; rows: [Y + 1, Y], row Y: from the
 *  beginning; columns: [Y, Y]; powers: exp(rows - top); columnsOfPowers: as columns. */
class PairTable {
  constructor(rows, n) {
    const top = largestOf(rows);
    const powers = rows.map((x) => Math.exp(x - top));
    const columns = (x) =>
      Float64Array.from({ length: n * n }, (_, i) => x[(i % n) * n + Math.floor(i / n)]);
    Object.assign(this, { rows, powers, columns: columns(rows), columnsOfPowers: columns(powers) });
  }
}

/** The distribution of the labels of a sequence (Lafferty et al. 2001).
 *  scores: [T, Y] of words; pairs: of label pairs at each word; n: Y. */
class Chain {
  constructor(scores, pairs, n) {
    Object.assign(this, { scores, pairs, n });
  }

  /** Find the most probable labels: argmax_y sum_t scores[t, y_t] + pairs[t, y_{t-1}, y_t].
   *  The lowest label wins a tie, of the last word first (Viterbi). */
  labels() {
    const { scores, pairs, n } = this;
    const best = Float64Array.from(scores);
    const steps = new Uint16Array(scores.length);
    for (let t = 0; t < pairs.length; t++) {
      const { rows, columns } = pairs[t];
      for (let y = 0; y < n; y++) {
        let top = t ? -Infinity : rows[n * n + y];
        for (let a = 0; t && a < n; a++) {
          const score = best[(t - 1) * n + a] + columns[y * n + a];
          if (score <= top) continue;
          top = score;
          steps[t * n + y] = a;
        }
        best[t * n + y] += top;
      }
    }
    const ends = best.subarray(-n);
    const path = pairs.length ? [ends.indexOf(largestOf(ends))] : [];
    for (let t = pairs.length - 1; t > 0; t--) path.push(steps[t * n + path.at(-1)]);
    return path.reverse();
  }

  /** Find the most probable labels given that no name is repeated, if possible.
   *  A state of this search is a label and the subset of names begun. A repetition costs
   *  `REPEATED`. The lowest label wins a tie, then the lowest subset.
   *  bits: [Y + 1, Y], names that a step begins, as bit sets; m: number of sets. */
  relaxed(bits, m) {
    const { scores, pairs, n } = this;
    let best = [[n * m, 0, null]]; // state, score, path
    pairs.forEach(({ rows }, t) => {
      const reached = new Map();
      for (const [state, total, path] of best) {
        const [previous, subset] = [Math.floor(state / m), state % m];
        bits[previous].forEach((begun, y) => {
          const next = y * m + (subset | begun);
          const score = total + (rows[previous * n + y] - (subset & begun ? REPEATED : 0));
          if (!(score <= reached.get(next)?.[1])) reached.set(next, [next, score, [y, path]]);
        });
      }
      best = [...reached.values()].sort((a, b) => a[0] - b[0]);
      for (const state of best) state[1] += scores[t * n + state[2][0]];
    });
    const labels = [];
    let path = best.reduce((a, b) => (b[1] > a[1] ? b : a))[2];
    for (; path; path = path[1]) labels.push(path[0]);
    return labels.reverse();
  }

  /** Compute p(y_t = y | x): [T, Y]. */
  marginals() {
    const { alphas, betas } = this.sums();
    return alphas.map((x, i) => x * betas[i]);
  }

  /** Compute the probability that the words from `begin` have some labels. */
  probability(begin, labels) {
    const { pairs, n } = this;
    const { alphas, betas, powers } = this.sums();
    let p = alphas[begin * n + labels[0]] * betas[(begin + labels.length - 1) * n + labels.at(-1)];
    for (let i = 1; i < labels.length; i++) {
      p *= pairs[begin + i].powers[labels[i - 1] * n + labels[i]];
      p *= powers[(begin + i) * n + labels[i]];
    }
    return p;
  }

  /** The sums over paths up to each word with a label, and behind it (Rabiner 1989, V.A), and the
   *  exponentials of scores, by which both are scaled: [T, Y]. */
  sums() {
    if (this.computed) return this.computed;
    const { scores, pairs, n } = this;
    const [alphas, betas, powers] = [0, 1, 2].map(() => new Float64Array(scores.length));
    for (let t = 0, start = 0; t < pairs.length; t++, start += n) {
      const top = largestOf(scores.subarray(start, start + n));
      if (t) addProduct(pairs[t].powers, alphas, start - n, { sums: alphas, at: start, n });
      else alphas.set(pairs[t].powers.subarray(n * n));
      let norm = 0;
      for (let i = start; i < start + n; i++) {
        powers[i] = Math.exp(scores[i] - top);
        norm += alphas[i] *= powers[i];
      }
      for (let i = start; i < start + n; i++) {
        alphas[i] /= norm || TINY;
        powers[i] /= norm || TINY;
      }
    }
    betas.fill(1, -n);
    for (let start = scores.length - n; start > 0; start -= n) {
      const behind = powers.subarray(start, start + n).map((x, y) => x * betas[start + y]);
      addProduct(pairs[start / n].columnsOfPowers, behind, 0, { sums: betas, at: start - n, n });
    }
    this.computed = { alphas, betas, powers };
    return this.computed;
  }
}

/** Add n elements of a vector, from a place on, times the rows of a matrix to sums. */
function addProduct(rows, vector, start, { sums, at, n }) {
  for (let i = 0; i < n; i++) {
    const x = vector[start + i];
    for (let j = 0; j < n; j++) sums[at + j] += x * rows[i * n + j];
  }
}

function largestOf(numbers) {
  let largest = -Infinity;
  for (let i = 0; i < numbers.length; i++) if (numbers[i] > largest) largest = numbers[i];
  return largest;
}

/** Return the first line of a model, with the checksum (Adler-32) of the others. */
function head(body) {
  let [a, b] = [1, 0];
  const bytes = new TextEncoder().encode(body);
  for (let i = 0; i < bytes.length; i++) {
    a = (a + bytes[i]) % 65521;
    b = (b + a) % 65521;
  }
  const digest = (b * 65536 + a).toString(16).padStart(8, "0");
  return `{"format": "${FORMAT}", "digest": "${digest}",`;
}

/** A model. json: the text of model.json. Throws an Error for other texts. */
export class Model {
  constructor(json) {
    const end = `${json}`.indexOf("\n");
    if (json.slice(0, Math.max(end, 0)) !== head(json.slice(end + 1))) {
      const reason = "This is no model of `export --format portable`, it is cut off or damaged, or";
      throw new Error(`${reason} of another version: copy it again, with its crf.mjs.`);
    }
    this.fields = JSON.parse(json);
    this.labels = this.fields.labels;
    this.tokenizer = new Tokenizer(this.fields.tokenizer);
    this.features = new Features(this.fields);
  }

  /** Label a text. Throws a TypeError for anything but a text of whole characters. */
  label(text) {
    const { blank, longer, thresholds, least } = this.fields;
    const { tokens, words, chain } = this.read(text);
    const path = this.path(chain);
    const spans = [];
    for (const [begin, end, label] of this.spans(path)) {
      const labels = path.slice(begin, end);
      let score = chain.probability(begin, labels);
      if (Object.hasOwn(longer, label) && end < path.length)
        score -= chain.probability(begin, [...labels, longer[label]]);
      if (score < thresholds[label]) {
        path.fill(0, begin, end);
        continue;
      }
      const [{ start }, { end: stop }] = [words[begin], words[end - 1]];
      score = Math.max(score, 0);
      spans.push({ start, end: stop, label, text: text.slice(start, stop), score });
    }
    for (const token of tokens) token.label = blank;
    const [n, marginals] = [this.labels.length, chain.marginals()];
    words.forEach((token, t) => {
      const label = marginals[t * n + path[t]] >= least[path[t]] ? path[t] : 0;
      token.label = this.labels[label];
      token.probability = marginals[t * n + label];
    });
    return { tokens, spans };
  }

  /** Return the features of a token and their weights by label, the strongest first.
   *  Throws a RangeError for a blank. */
  explain(text, token) {
    const reading = this.read(text);
    const word = reading.words.indexOf(reading.tokens[token]);
    if (word < 0) throw new RangeError(`Token ${token} is a blank, or there is none.`);
    const byLabel = ({ labels, values }) => labels.map((y, i) => [this.labels[y], values[i]]);
    const strength = ([, weights]) => Math.max(...Object.values(weights).map(Math.abs));
    return this.features
      .named(reading, word)
      .map(([name, weights]) => [name, Object.fromEntries(byLabel(weights))])
      .sort((a, b) => strength(b) - strength(a));
  }

  /** Read a text: its tokens and features, and the distribution of its labels. */
  read(text) {
    if (typeof text !== "string" || /\p{Cs}/u.test(text)) {
      const reason = "A text is a string of whole characters, without halves of surrogate pairs";
      throw new TypeError(`${reason}, not ${typeof text} ${JSON.stringify(text)?.slice(0, 60)}`);
    }
    const reading = this.features.read(this.tokenizer.tokens(text));
    return { ...reading, chain: this.chain(reading) };
  }

  /** Return the distribution of the labels of a text; no span crosses an empty line. */
  chain(reading) {
    const n = this.labels.length;
    const scores = this.features.scores(reading);
    const mask = (t, row) => row.forEach((x, y) => (scores[t * n + y] += x));
    reading.breaks.forEach((lines, t) => lines === 2 && mask(t, this.fields.begins));
    if (scores.length) mask(reading.words.length - 1, this.fields.ends);
    return new Chain(scores, this.features.pairs(reading), n);
  }

  /** Find the best labels, with the weight of the outside label, and names at most once. */
  path({ scores, pairs, n }) {
    const { once: begun, outside_weight: weight } = this.fields;
    const chain = new Chain(scores.slice(), pairs, n);
    for (let i = 0; i < scores.length; i += n) chain.scores[i] += weight;
    let path = chain.labels();
    const tracked = [];
    while (begun.length && n * 2 ** (tracked.length + 1) <= MOST_STATES) {
      const steps = path.map((y, t) => begun[t ? path[t - 1] : n][y]);
      const names = steps.filter((name) => name && !tracked.includes(name));
      const again = names.find((name, k) => names.indexOf(name) < k);
      if (again === undefined) break;
      tracked.push(again);
      const bit = (name) => (tracked.includes(name) ? 1 << tracked.indexOf(name) : 0);
      path = chain.relaxed(begun.map((row) => row.map(bit)), 2 ** tracked.length);
    }
    return path;
  }

  /** Return the spans that labels encode: the words begin:end, and the type. */
  spans(path) {
    const { starts, kinds } = this.fields;
    const spans = [];
    path.forEach((y, t) => {
      const kind = starts[t ? path[t - 1] : this.labels.length][y];
      if (kind) spans.push([t, t, kind]);
      if (kinds[y]) spans.at(-1)[1] = t + 1;
    });
    return spans;
  }
}

/** Print a line of JSON for each line of files, or of the standard input; .jsonl has "text". */
async function main(paths) {
  const { readFileSync } = await import("node:fs");
  const model = new Model(readFileSync(new URL("model.json", import.meta.url), "utf8"));
  for (const path of paths.length ? paths : [0]) {
    for (const line of readFileSync(path, "utf8").replace(/\n$/, "").split("\n")) {
      const text = /\.jsonl$/.test(path) ? JSON.parse(line).text : line.replace(/\r+$/, "");
      console.log(JSON.stringify({ text, ...model.label(text) }));
    }
  }
}

if (globalThis.process?.argv?.[1]?.endsWith("crf.mjs")) main(process.argv.slice(2));
