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
const REPEATED = 1e9; // cost of a repetition, far above differences between scores of paths

// Characters as Python's `isspace`, `splitlines`, `isdigit`, `isupper`, `istitle`, `islower` see them
const SPACE = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const SPACES = new RegExp(`^[${SPACE}]+$`);
const PIECES = new RegExp(`[${SPACE}]+|[^${SPACE}]+`, "g");
const LINES = /\r\n|[\n-\r\x1c-\x1e\x85\u2028\u2029]/g;
const DIGITS = new RegExp(
  "^[\\p{Nd}²³¹\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-" +
    "\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-" +
    "\\u2792\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}]+$",
  "u",
);
const UPPER = /\p{Uppercase}/u;
const CAPITAL = /[\p{Uppercase}\p{Lt}]/u;
const LOWER = /(?![\u10fc\ua7f2-\ua7f4\uab69])[\p{Lowercase}\u0295]/u; // as in Unicode 13
const SPELLED = { "\\d": "\\p{Nd}", "\\s": SPACE, "\\w": "\\p{L}\\p{N}_", "\\Z": "$" };

/** Return an expression of model.json, in which \d, \s, \w, \Z and $ mean what they do in Python. */
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
    const flags = { prefix: "u", suffix: "u", infix: "gu", token: "uy", url: "uy" };
    this.patterns = {};
    for (const name in flags) this.patterns[name] = expression(patterns[name], flags[name]);
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
    const [prefixes, suffixes] = [[], []];
    while (text && !this.matches("token", text) && !this.rules.has(text)) {
      let head = this.length("prefix", text);
      const ahead = text.slice(head);
      const tail = this.rules.has(ahead) ? 0 : this.length("suffix", ahead);
      if (tail && this.rules.has(text.slice(0, -tail))) head = 0;
      if (head === 0 && tail === 0) break;
      const end = text.length - tail;
      prefixes.push(text.slice(0, head));
      suffixes.unshift(text.slice(end));
      text = text.slice(head, end);
    }
    return [...prefixes, ...this.inner(text), ...suffixes].filter(Boolean);
  }

  length(name, text) {
    return this.patterns[name].exec(text)?.[0].length ?? 0;
  }

  matches(name, text) {
    this.patterns[name].lastIndex = 0;
    return this.patterns[name].test(text);
  }

  /** Split a piece without affixes. */
  inner(text) {
    if (this.rules.has(text)) return this.rules.get(text);
    if (this.matches("token", text) || this.matches("url", text)) return [text];
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
  ...{ casefold, fold, shape, is_title: isTitle, like_num: likeNum },
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
  has_hyphen: (text) => /[-\u2010\u2011]/.test(text),
  prefix: (text, n) => affix(text, n, 0, n),
  suffix: (text, n) => affix(text, n, -n),
  regex: (text, pattern) => search(pattern).test(text),
  match: (text, pattern) => search(pattern).exec(text)?.[0] ?? "",
};
/** Attributes that depend on other words. */
const CONTEXTUAL = ["break", "glued", "doc_run", "phrase"];

/** Return B, I, L or U of words in the longest phrases of a list.
 *  texts: of words, as they are compared; phrases: their types, by words joined by tabs. */
function phraseMarks(texts, phrases, longest) {
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
function runsElsewhere(texts, apart) {
  const lowers = texts.map((x) => x.toLowerCase());
  const follows = (t, signs) => [...signs].includes(lowers[t - 1]);
  const begins = lowers.map((_, t) => !t || apart.includes(t) || follows(t, ".!?…"));
  const isFirst = begins.map((begin, t) => begin || follows(t, ":¿¡-–—•*'\"“«"));
  const cases = texts.map((text, t) => (text === lowers[t] ? 0 : 2 - isFirst[t]));
  const inside = (x, t) => (x === 2 && cases[t - 1] > 0) + 2 * (cases[t + 1] === 2);
  const keys = cases.map((x, t) => `${x ? inside(x, t) : -1} ${lowers[t]}`);
  const counts = new Map();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  const isUsed = begins.filter(Boolean).length > 1;
  return keys.map((key, t) => {
    const others = (k) => (counts.get(`${k} ${lowers[t]}`) ?? 0) - (key[0] === `${k}`);
    const signs = cases[t] && isUsed ? ["2B", "3I", "1L", "0U"] : [];
    return signs.map(([k, sign]) => (others(k) > 0 ? sign : "")).join("");
  });
}

// Features

/** Return the value of an attribute as in features, "" for none. */
function written(value) {
  return typeof value === "string" ? value : value ? `${+value}` : "";
}

/** Scores of label pairs, and their exponentials: [Y + 1, Y], row Y: from the beginning.
 *  n: Y; columns, powerColumns: [Y, Y], by label and previous label. */
class PairTable {
  constructor(rows, n) {
    const top = rows.reduce((a, b) => Math.max(a, b));
    const powers = rows.map((x) => Math.exp(x - top));
    const transposed = (table) =>
      Float64Array.from({ length: n * n }, (_, i) => table[(i % n) * n + Math.floor(i / n)]);
    Object.assign(this, { n, rows, columns: transposed(rows) });
    Object.assign(this, { powers, powerColumns: transposed(powers) });
  }
}

/** Return weights by the values of a feature, one map inside another for each value. */
function nested(weights) {
  const root = new Map();
  for (const [feature, text] of Object.entries(weights)) {
    const values = feature.split("\t");
    let map = root;
    for (let i = 0; i + 1 < values.length; i++) {
      if (!map.has(values[i])) map.set(values[i], new Map());
      map = map.get(values[i]);
    }
    map.set(values.at(-1), text);
  }
  return root;
}

/** The attributes, templates and weights of a model. model: the fields of model.json. */
class Features {
  constructor(model) {
    Object.assign(this, { model, nLabels: model.labels.length, margin: model.margin });
    this.lists = new Map();
    for (const [key, classes] of Object.entries(model.classes)) {
      const names = Object.entries(classes).map(([name, words]) => [words.split(" "), name]);
      this.lists.set(key, new Map(names.flatMap(([words, name]) => words.map((x) => [x, name]))));
    }
    for (const [key, phrases] of Object.entries(model.phrases))
      this.lists.set(`phrases ${key}`, new Map(Object.entries(phrases)));
    const [near, wide, bigrams] = [model.near, model.wide, model.bigrams].map((templates) =>
      templates.map(([name, reads, weights]) => ({ name, reads, weights: nested(weights) })),
    );
    Object.assign(this, { near, wide, bigrams });
    this.offsets = [...new Set(near.map(({ reads }) => reads[0][1]))].sort((a, b) => a - b);
    this.weights = cached((text) => this.readWeights(text));
    this.word = cached((text) => this.readWord(text));
    this.pairsOf = cached((present) => this.sumPairs(present));
    const distances = Array.from({ length: this.margin }, (_, i) => i + 1);
    this.ahead = distances.map((i) => this.edge("^", this.margin + 1 - i));
    this.behind = distances.map((i) => this.edge("$", i));
  }

  /** Return the labels, or the numbers of label pairs, and weights of a feature. */
  readWeights(text) {
    const numbers = text.split(" ").map(Number);
    const [labels, values] = [0, 1].map((odd) => numbers.filter((_, i) => i % 2 === odd));
    return { labels, values: this.model.type === "f" ? values.map(Math.fround) : values };
  }

  /** Read the tokens of a text.
   *  positions: of words among tokens; apart: words behind an empty line; words: their contents, and
   *  those outside the sequence; columns: values of attributes of `words`. */
  read(tokens) {
    const [apart, positions, breaks, inside] = [[], [], [], []];
    let nBreaks = -3; // blanks at the beginning of a text do not count
    for (let t = 0; t < tokens.length; t++) {
      const word = this.word(tokens[t].text);
      if (word.nLines) {
        if (nBreaks >= 0) nBreaks += word.nLines - 1;
        continue;
      }
      if (nBreaks >= 2) apart.push(breaks.length);
      breaks.push(Math.min(Math.max(nBreaks, 0), 2));
      inside.push(word);
      positions.push(t);
      nBreaks = 0;
    }
    const words = [...this.ahead, ...inside, ...this.behind];
    const seen = positions.map((t) => tokens[t]);
    const contextual = {
      break: () => breaks,
      glued: () => seen.map((x, t) => x.end === seen[t + 1]?.start),
      doc_run: () => runsElsewhere(seen.map((x) => x.text), apart),
      phrase: (compared, phrases, longest) => {
        const texts = seen.map((x) => ATTRIBUTES[compared](x.text));
        return phraseMarks(texts, this.lists.get(`phrases ${phrases}`), longest);
      },
    };
    const columns = this.model.attributes.map(([name, ...settings], number) => {
      const column = words.map((word) => word.values[number]);
      const values = contextual[name]?.(...settings) ?? [];
      column.splice(this.margin, values.length, ...values.map(written));
      return column;
    });
    return { tokens, positions, apart, words, columns };
  }

  /** Read a word: without characters that have no width, composed.
   *  nLines: 0 for a word, and for a blank 1 + its line breaks, at most 3; values: of attributes;
   *  sums: of the weights of features of this word alone, by its offset. */
  readWord(text) {
    const visible = Array.from(text).filter((x) => !this.model.unseen.includes(x)).join("");
    const view = visible.normalize("NFC") || " ";
    if (SPACES.test(view))
      return { nLines: Math.min(1 + (view.match(LINES) ?? []).length, 3), values: [], sums: [] };
    const values = this.model.attributes.map(([name, ...settings]) => {
      if (name === "cluster" || name === "word_labels") settings[0] = this.lists.get(settings[0]);
      return CONTEXTUAL.includes(name) ? "" : written(ATTRIBUTES[name](view, ...settings));
    });
    return { nLines: 0, values, sums: this.sums(values) };
  }

  /** Return what is read outside the sequence. */
  edge(sign, distance) {
    const values = this.model.attributes.map(() => ` ${sign}${Math.min(distance, this.model.edges)}`);
    return { nLines: 0, values, sums: this.sums(values) };
  }

  /** Sum the weights of features of one word, for each of `offsets`. */
  sums(values) {
    const sums = this.offsets.map(() => new Float64Array(this.nLabels));
    for (const { reads, weights } of this.near) {
      const [[number, offset]] = reads;
      this.add(weights.get(values[number]), sums[this.offsets.indexOf(offset)], 0);
    }
    return sums;
  }

  /** Add the weights of a feature, if there are any, to scores from a place on. */
  add(text, scores, start) {
    if (text === undefined) return;
    const { labels, values } = this.weights(text);
    for (let i = 0; i < labels.length; i++) scores[start + labels[i]] += values[i];
  }

  /** Sum the weights of labels at each word: [T, Y]. */
  scores(reading) {
    const n = this.nLabels;
    const scores = new Float64Array(reading.positions.length * n);
    for (let t = 0; t < reading.positions.length; t++) {
      for (let i = 0; i < this.offsets.length; i++) {
        const sums = reading.words[this.margin + t + this.offsets[i]].sums[i];
        for (let y = 0; y < n; y++) scores[t * n + y] += sums[y];
      }
      for (const template of this.wide) this.add(this.present(template, reading, t), scores, t * n);
    }
    return scores;
  }

  /** Return the weights of a template's feature at a word, undefined if it has none. */
  present({ reads, weights }, reading, t) {
    if (!reads.length) return weights.get("");
    for (let i = 0; i < reads.length && weights !== undefined; i++)
      weights = weights.get(this.value(reads[i], reading, t));
    return weights;
  }

  /** Return the value that a template reads at a word. */
  value([number, offset, isPlace], { positions, columns }, t) {
    const place = isPlace ? (offset < 0 ? positions.length : -1) : t;
    return columns[number][this.margin + offset + place];
  }

  /** Return names of features at a word, and the weights of labels. */
  named(reading, t) {
    const templates = [...this.near, ...this.wide];
    const present = templates.filter((x) => this.present(x, reading, t) !== undefined);
    return present.map((template) => {
      const values = template.reads.map((read) => this.value(read, reading, t).replace(" ", ""));
      const name = values.length ? `${template.name}=${values.join("|")}` : template.name;
      return [name, this.weights(this.present(template, reading, t))];
    });
  }

  /** Return the scores of label pairs at each word. */
  pairs(reading) {
    return reading.positions.map((_, t) => {
      const texts = this.bigrams.map((template) => this.present(template, reading, t));
      return this.pairsOf(texts.filter((x) => x !== undefined).join("\n"));
    });
  }

  /** Sum the weights of label pairs of features. */
  sumPairs(present) {
    const [n, rows] = [this.nLabels, Float64Array.from(this.model.valid.flat())];
    for (const text of present.split("\n").filter(Boolean)) this.add(text, rows, 0);
    return new PairTable(rows, n);
  }
}

// Labels

/** The distribution of the labels of a sequence, by a scaled recursion (Rabiner 1989, V.A).
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
          if (score > top) {
            top = score;
            steps[t * n + y] = a;
          }
        }
        best[t * n + y] += top;
      }
    }
    const ends = Array.from(best.subarray(-n));
    const path = pairs.length ? [ends.indexOf(Math.max(...ends))] : [];
    for (let t = pairs.length - 1; t > 0; t--) path.push(steps[t * n + path.at(-1)]);
    return path.reverse();
  }

  /** Return the chain in which repetitions of names cost `REPEATED`.
   *  State y * m + subset is a label and the names begun.
   *  bits: [Y + 1, Y], names that a step begins, as bit sets; m: number of bit sets. */
  tracking(bits, m) {
    const [n, states] = [this.n, this.n * m];
    const expanded = ({ rows }) => {
      const table = new Float64Array((states + 1) * states).fill(-Infinity);
      for (let state = 0; state <= states; state++) {
        const [previous, begun] = [Math.floor(state / m), state % m]; // state n * m: the beginning
        for (let y = 0; y < n; y++) {
          const bit = bits[previous][y];
          const score = rows[previous * n + y] - (begun & bit ? REPEATED : 0);
          table[state * states + y * m + (begun | bit)] = score;
        }
      }
      return new PairTable(table, states);
    };
    const tables = new Map([...new Set(this.pairs)].map((table) => [table, expanded(table)]));
    const scores = Array.from(this.scores).flatMap((score) => Array(m).fill(score));
    return new Chain(scores, this.pairs.map((table) => tables.get(table)), states);
  }

  /** Compute p(y_t = y | x): [T, Y]. */
  marginals() {
    const { alphas, betas } = this.sums();
    return alphas.map((x, i) => x * betas[i]);
  }

  /** Compute the probability that the words from `begin` have some labels. */
  probability(begin, labels) {
    const n = this.n;
    const { alphas, betas, powers } = this.sums();
    const step = (p, y, i) => {
      const t = begin + i;
      return i ? p * this.pairs[t].powers[labels[i - 1] * n + y] * powers[t * n + y] : p;
    };
    const p = labels.reduce(step, alphas[begin * n + labels[0]]);
    return p * betas[(begin + labels.length - 1) * n + labels.at(-1)];
  }

  /** Sums over paths up to each word, and behind it; exp(scores) by which they are scaled. */
  sums() {
    const { scores, pairs, n } = this;
    const [alphas, powers] = [new Float64Array(scores.length), new Float64Array(scores.length)];
    const betas = new Float64Array(scores.length).fill(1);
    for (let t = 0; !this.computed && t < pairs.length; t++) {
      const [start, { powers: rows, powerColumns }] = [t * n, pairs[t]];
      const top = scores.subarray(start, start + n).reduce((a, b) => Math.max(a, b));
      let norm = 0;
      for (let y = 0; y < n; y++) {
        let sum = t ? 0 : rows[n * n + y];
        for (let a = 0; t && a < n; a++) sum += alphas[start - n + a] * powerColumns[y * n + a];
        powers[start + y] = Math.exp(scores[start + y] - top);
        alphas[start + y] = sum * powers[start + y];
        norm += alphas[start + y];
      }
      for (let i = start; i < start + n; i++) {
        alphas[i] /= norm;
        powers[i] /= norm;
      }
    }
    for (let t = pairs.length - 1; !this.computed && t > 0; t--) {
      const { powers: rows } = pairs[t];
      const behind = betas.subarray(t * n, t * n + n).map((x, y) => x * powers[t * n + y]);
      for (let a = 0; a < n; a++) {
        let sum = 0;
        for (let y = 0; y < n; y++) sum += rows[a * n + y] * behind[y];
        betas[(t - 1) * n + a] = sum;
      }
    }
    this.computed ??= { alphas, betas, powers };
    return this.computed;
  }
}

/** A model. json: the text of model.json. Throws an Error for other texts. */
export class Model {
  constructor(json) {
    if (!`${json}`.startsWith(`{"format": "${FORMAT}",`)) {
      const reason = "This is no model of `export --format portable`, or of another version";
      throw new Error(`${reason}: copy it again, with its crf.mjs.`);
    }
    this.fields = JSON.parse(json);
    this.labels = this.fields.labels;
    this.tokenizer = new Tokenizer(this.fields.tokenizer);
    this.features = new Features(this.fields);
  }

  /** Label a text. Throws a TypeError for anything but a text of whole characters. */
  label(text) {
    const { blank, longer, thresholds, least } = this.fields;
    const { tokens, positions, chain } = this.read(text);
    const path = this.path(chain);
    const spans = [];
    for (const [begin, end, label] of this.spans(path)) {
      const labels = path.slice(begin, end);
      let score = chain.probability(begin, labels);
      if (label in longer && end < path.length)
        score = Math.max(score - chain.probability(begin, [...labels, longer[label]]), 0);
      if (score < thresholds[label]) {
        path.fill(0, begin, end);
        continue;
      }
      const [start, stop] = [tokens[positions[begin]].start, tokens[positions[end - 1]].end];
      spans.push({ start, end: stop, label, text: text.slice(start, stop), score });
    }
    for (const token of tokens) token.label = blank;
    const [n, marginals] = [this.labels.length, chain.marginals()];
    positions.forEach((i, t) => {
      const label = marginals[t * n + path[t]] >= least[path[t]] ? path[t] : 0;
      tokens[i].label = this.labels[label];
      tokens[i].probability = marginals[t * n + label];
    });
    return { tokens, spans };
  }

  /** Return the features of a token and their weights by label, the strongest first.
   *  Throws a RangeError for a blank. */
  explain(text, token) {
    const reading = this.read(text);
    const word = reading.positions.indexOf(token);
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
    for (const t of reading.apart) mask(t, this.fields.begins);
    if (scores.length) mask(reading.positions.length - 1, this.fields.ends);
    return new Chain(scores, this.features.pairs(reading), n);
  }

  /** Find the best labels, with the weight of the outside label, and names at most once. */
  path({ scores, pairs, n }) {
    const { once, outside_weight: weight } = this.fields;
    const chain = new Chain(scores.map((x, i) => (i % n ? x : x + weight)), pairs, n);
    let [path, m] = [chain.labels(), 1];
    const tracked = new Map();
    while (once.length && 2 * m * n <= MOST_STATES) {
      const steps = path.map((y, t) => once[t ? path[t - 1] : n][y]);
      const again = steps.find((x, t) => x && !tracked.has(x) && steps.indexOf(x) < t);
      if (again === undefined) break;
      tracked.set(again, m);
      m *= 2;
      const bits = once.map((row) => row.map((name) => tracked.get(name) ?? 0));
      path = chain.tracking(bits, m).labels().map((state) => Math.floor(state / m));
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
async function main([...paths]) {
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
