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
const UNIT = 2 ** -30; // of weights, whose sums are exact, so that equal scores are equal
const TINY = 1e-300; // sum of paths that are too improbable for numbers
const REPEATED = 1e9; // cost of a repetition, far above differences between scores of paths

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
    this.patterns = {};
    for (const [name, text] of Object.entries(patterns))
      this.patterns[name] = new RegExp(text, name === "infix" || name === "piece" ? "gu" : "u");
    this.rules = new Map(Object.entries(rules));
    this.matched = new Map(Object.entries(matched));
    this.texts = cached((text) => this.split(text));
  }

  /** Split a text at blanks, then each piece, then apply special cases of several tokens. */
  tokens(text) {
    const tokens = [];
    for (const { 0: piece, index: start } of text.matchAll(this.patterns.piece))
      tokens.push(...placed(this.texts(piece), start));
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

/** Return a text without case. folded: characters, if this is not their lower case. */
function casefold(text, folded) {
  return Array.from(text, (x) => folded.get(x) ?? x.toLowerCase()).join("");
}

/** Return a text without accents and case. combining: expression for accents. */
function fold(text, folded, combining) {
  return casefold(text.normalize("NFKD").replace(new RegExp(combining, "gu"), ""), folded);
}

/** Return the classes of characters. classes: the first character of ranges, and their class. */
function signs(text, classes) {
  const starts = classes.get("starts");
  const next = (x) => starts.findIndex((start) => start > x.codePointAt(0));
  return Array.from(text, (x) => classes.get("signs").at(next(x) - 1)).join("");
}

/** Return spaCy's shape of a word: Xxxxx, dd.d; at most so many equal characters in a row. */
function shape(text, classes, most) {
  const marks = signs(text, classes).replace(/[ta]/g, "x");
  const chars = Array.from(text, (char, i) => ("Xxd".includes(marks[i]) ? marks[i] : char));
  const runs = new RegExp(`((.)\\2{${most - 1}})\\2+`, "gsu");
  return chars.length >= 100 ? "LONG" : chars.join("").replace(runs, "$1");
}

/** Return the distinct n-grams of a word between marks; a long word has those of its ends. */
function ngrams(text, low, high, begin, end) {
  const marked = begin + text.replace(/^(.{10}).+(.{10})$/u, "$1\n$2") + end;
  const texts = [];
  for (let n = low; n <= high; n++)
    texts.push(...marked.matchAll(new RegExp(`(?=([^\\n]{${n}}))`, "gu")));
  return [...new Set(texts.map((match) => match[1]))].join("\n");
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

/** Return leading bits of the class of a word, or else of its form in lower case.
 *  classes: by hash of words. */
function classOf(text, classes, bits) {
  const name = classes.get(stringHash(text)) ?? classes.get(stringHash(text.toLowerCase()));
  return (name ?? "").slice(0, bits);
}

const search = cached((pattern) => new RegExp(pattern, "u"));

/** Attributes of a word, called with the word and the arguments in the model. */
const ATTRIBUTES = {
  ...{ casefold, fold, shape, ngrams, cluster: classOf },
  orth: (text) => text,
  lower: (text) => text.toLowerCase(),
  length: (text) => `${Array.from(text).length}`,
  match: (text, pattern) => matched(search(pattern), text),
  regex: (text, pattern) => (search(pattern).test(text) ? "1" : ""),
  signs: (text, classes, pattern) => (search(pattern).test(signs(text, classes)) ? "1" : ""),
  word_labels: (text, digits, ...values) =>
    classOf(text.replace(new RegExp(digits, "gu"), "0").toLowerCase(), ...values),
};

/** Return "1" for words that end where the next one begins. */
function glued(words) {
  return words.map((word, t) => (word.end === words[t + 1]?.start ? "1" : ""));
}

/** Return B, I, L or U of words in the longest phrases of a list.
 *  phrases: their types, by words joined by tabs; attribute: by which words are compared. */
function phraseMarks(words, breaks, phrases, longest, ...[attribute, ...values]) {
  const texts = words.map((word) => ATTRIBUTES[attribute](word.text, ...values));
  const marks = texts.map(() => "");
  for (let n = longest; n > 0; n--) {
    for (let i = 0; i + n <= texts.length; i++) {
      const kind = phrases.get(texts.slice(i, i + n).join("\t"));
      if (kind === undefined || marks[i] || marks[i + n - 1]) continue;
      const letters = n > 1 ? `B${"I".repeat(n - 2)}L` : "U";
      for (let k = 0; k < n; k++) marks[i + k] = kind ? `${letters[k]}-${kind}` : letters[k];
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
  const place = (x, t) => "ULBI"[(x === 2 && cases[t - 1] > 0) + 2 * (cases[t + 1] === 2)];
  const places = cases.map((x, t) => (x ? place(x, t) : ""));
  const counts = new Map();
  const count = (t, letter) => counts.get(letter + lowers[t]) ?? 0;
  places.forEach((letter, t) => counts.set(letter + lowers[t], count(t, letter) + 1));
  const isUsed = begins.filter(Boolean).length > 1;
  const others = (letter, t) => [..."BILU"].filter((x) => count(t, x) > (x === letter));
  return places.map((letter, t) => (isUsed && letter ? others(letter, t).join("") : ""));
}

/** Attributes of all words, called with the words, the line breaks before them, and arguments. */
const CONTEXTUAL = {
  break: (words, breaks) => breaks.map((n) => `${n || ""}`),
  ...{ glued, phrase: phraseMarks, doc_run: runsElsewhere },
};

// Features

/** The attributes, templates and weights of a model. model: the fields of model.json. */
class Features {
  constructor(model) {
    this.model = model;
    this.characters = Object.values(model.characters).map((text) => new RegExp(text, "gu"));
    const lists = new Map();
    for (const key in model.lists) lists.set(key, new Map(Object.entries(model.lists[key])));
    const argument = (x) => (Array.isArray(x) ? lists.get(x[0]) : x);
    const call = ([name, ...values]) => [name, values.map(argument)];
    this.calls = model.attributes.map(call);
    this.contexts = model.contexts.map(call);
    const template = ([name, reads, weights]) => [name, reads, new Map(Object.entries(weights))];
    for (const kind of ["near", "wide", "bigrams"]) this[kind] = model[kind].map(template);
    this.weights = cached((text) => this.readWeights(text));
    this.word = cached((text) => this.readWord(text));
    this.pairsOf = cached((texts) => this.sumPairs(texts));
  }

  /** Return the labels, or the numbers of label pairs, and weights of a feature. */
  readWeights(text) {
    return (text.match(/\S+ \S+/g) ?? []).map((pair) => {
      const [label, weight] = pair.split(" ").map(Number);
      return { label, weight: weight * UNIT };
    });
  }

  /** Read the tokens of a text.
   *  words: the tokens that are no blanks; breaks: line breaks before them, at most 2; contents: of
   *  words and the positions outside the text; columns: by attribute, the values of `contents`. */
  read(tokens) {
    const [ahead, behind] = this.model.outside;
    const contents = ahead.map(this.word);
    const [words, breaks] = [[], []];
    let nBreaks = 0;
    for (const token of tokens) {
      const word = this.word(token.text);
      if (!word.values) {
        nBreaks += words.length ? word.nBreaks : 0;
        continue;
      }
      words.push(token);
      breaks.push(Math.min(nBreaks, 2));
      contents.push(word);
      nBreaks = 0;
    }
    contents.push(...behind.map(this.word));
    const columns = this.calls.map((_, i) => contents.map((word) => word.values[i]));
    for (const [name, values] of this.contexts)
      columns.push([...ahead, ...CONTEXTUAL[name](words, breaks, ...values), ...behind]);
    return { tokens, words, breaks, contents, columns };
  }

  /** Read a word without characters that have no width, composed, or a position outside.
   *  nBreaks: of a blank, its line breaks, at most 2, and nothing else; values: of attributes, several
   *  n-grams joined by line ends; sums: of the weights of features of this word, by place. */
  readWord(text) {
    const [unseen, blank, lineBreak] = this.characters;
    const view = text.replace(unseen, "").normalize("NFC");
    if (view.search(blank) === 0)
      return { nBreaks: Math.min((view.match(lineBreak) ?? []).length, 2) };
    const read = ([name, values]) => ATTRIBUTES[name](view, ...values);
    const values = this.calls.map(text[0] === " " ? () => text : read);
    const sums = this.model.places.map(() => this.model.labels.map(() => 0));
    for (const [, [[number, place]], weights] of this.near) {
      for (const value of values[number].split("\n"))
        this.add(weights.get(value), sums[this.model.places.indexOf(place)]);
    }
    return { values, sums };
  }

  /** Add the weights of a feature, if there are any, to scores. */
  add(text, scores) {
    if (text) for (const { label, weight } of this.weights(text)) scores[label] += weight;
  }

  /** Sum the weights of labels at each word: [T, Y]. */
  scores({ words, contents, columns }) {
    const { labels, places } = this.model;
    return words.map((_, t) => {
      const scores = labels.map(() => 0);
      places.forEach((place, i) => {
        const sums = contents[place + t].sums[i];
        for (let y = 0; y < sums.length; y++) scores[y] += sums[y];
      });
      for (const [, reads, weights] of this.wide)
        this.add(weights.get(keyOf(reads, columns, t)), scores);
      return scores;
    });
  }

  /** Return the scores of label pairs at each word. */
  pairs({ words, columns }) {
    return words.map((_, t) => {
      const texts = this.bigrams.map(([, reads, x]) => x.get(keyOf(reads, columns, t)));
      return this.pairsOf(texts.filter(Boolean).join(" "));
    });
  }

  /** Return names of features at a word, and the weights of labels. */
  named({ columns }, t) {
    const shown = (x) => (x ? `=${x.replaceAll("\t", "|").replaceAll(" ", "")}` : "");
    return [...this.near, ...this.wide].flatMap(([name, reads, weights]) =>
      keyOf(reads, columns, t)
        .split("\n")
        .filter((x) => name && weights.has(x))
        .map((x) => [name + shown(x), this.weights(weights.get(x))]),
    );
  }

  /** Sum the weights of label pairs of features. */
  sumPairs(texts) {
    const rows = this.model.valid.map((row) => row.slice());
    const n = this.model.labels.length;
    for (const { label, weight } of this.weights(texts))
      rows[Math.floor(label / n)][label % n] += weight;
    return new PairTable(rows);
  }
}

/** Return the values that a template reads at a word, joined by tabs. */
function keyOf(reads, columns, t) {
  let key = "";
  for (let i = 0; i < reads.length; i++) {
    const [number, place, isAbsolute] = reads[i];
    const value = columns[number].at(isAbsolute ? place : place + t);
    key = i ? `${key}\t${value}` : value;
  }
  return key;
}

// Labels

/** Scores of label pairs, and their exponentials. rows: [Y + 1, Y], row Y: from the beginning;
 *  powers: exp(rows - top); columns: of powers, without the beginning. */
class PairTable {
  constructor(rows) {
    const top = Math.max(...rows.flat());
    this.rows = rows;
    this.powers = rows.map((row) => row.map((x) => Math.exp(x - top)));
    this.columns = rows[0].map((_, y) => this.powers.slice(0, -1).map((row) => row[y]));
  }
}

/** The distribution of the labels of a sequence (Lafferty et al. 2001).
 *  scores: [T, Y] of words; pairs: of label pairs at each word. */
class Chain {
  constructor(scores, pairs) {
    Object.assign(this, { scores, pairs });
  }

  /** Find the most probable labels: argmax_y sum_t scores[t, y_t] + pairs[t, y_{t-1}, y_t].
   *  The lowest label wins a tie, of the last word first (Viterbi). */
  labels() {
    let best = [];
    const steps = this.scores.map((row, t) => {
      const { rows } = this.pairs[t];
      const tops = rows.at(t ? 0 : -1).map((x) => x + (best[0] ?? 0));
      const step = row.map(() => 0);
      for (let a = 1; a < best.length; a++) {
        for (let y = 0; y < row.length; y++) {
          const score = best[a] + rows[a][y];
          if (score <= tops[y]) continue;
          tops[y] = score;
          step[y] = a;
        }
      }
      best = row.map((x, y) => x + tops[y]);
      return step;
    });
    const path = best.length ? [best.indexOf(Math.max(...best))] : [];
    for (let t = steps.length - 1; t > 0; t--) path.push(steps[t][path.at(-1)]);
    return path.reverse();
  }

  /** Find the most probable labels given that no name is repeated, if possible.
   *  A state of this search is a label and the subset of names begun. A repetition costs
   *  `REPEATED`. The lowest label wins a tie, then the lowest subset.
   *  bits: [Y + 1, Y], names that a step begins, as bit sets. */
  relaxed(bits) {
    const m = 2 ** 31; // more than a set
    let best = [[(bits.length - 1) * m, 0, null]]; // state, score, path
    this.pairs.forEach(({ rows }, t) => {
      const reached = new Map();
      for (const [state, total, path] of best) {
        const [previous, subset] = [Math.floor(state / m), state % m];
        bits[previous].forEach((begun, y) => {
          const next = y * m + (subset | begun);
          const score = total + (rows[previous][y] - (subset & begun ? REPEATED : 0));
          if (!(score <= reached.get(next)?.[1])) reached.set(next, [next, score, [y, path]]);
        });
      }
      best = [...reached.values()].sort((a, b) => a[0] - b[0]);
      for (const state of best) state[1] += this.scores[t][state[2][0]];
    });
    const labels = [];
    let path = best.reduce((a, b) => (b[1] > a[1] ? b : a))[2];
    for (; path; path = path[1]) labels.push(path[0]);
    return labels.reverse();
  }

  /** Compute p(y_t = y | x): [T, Y]. */
  marginals() {
    const { alphas, betas } = this.sums();
    return alphas.map((alpha, t) => alpha.map((x, y) => x * betas[t][y]));
  }

  /** Compute the probability that the words from `begin` have some labels. */
  probability(begin, labels) {
    const { alphas, betas, powers } = this.sums();
    let p = alphas[begin][labels[0]] * betas[begin + labels.length - 1][labels.at(-1)];
    for (let i = 1; i < labels.length; i++)
      p *= this.pairs[begin + i].powers[labels[i - 1]][labels[i]] * powers[begin + i][labels[i]];
    return p;
  }

  /** The sums over paths up to each word with a label, and behind it (Rabiner 1989, V.A), and the
   *  exponentials of scores, by which both are scaled: [T, Y]. */
  sums() {
    if (this.computed) return this.computed;
    const { scores, pairs } = this;
    const [alphas, betas, powers] = [[], [], []];
    scores.forEach((row, t) => {
      const top = Math.max(...row);
      const power = row.map((x) => Math.exp(x - top));
      const sums = t ? products(pairs[t].columns, alphas[t - 1]) : pairs[t].powers.at(-1);
      const alpha = power.map((x, y) => x * sums[y]);
      const norm = alpha.reduce((total, x) => total + x) || TINY;
      alphas.push(alpha.map((x) => x / norm));
      powers.push(power.map((x) => x / norm));
    });
    let behind = scores.at(-1)?.map(() => 1);
    for (let t = scores.length - 1; t >= 0; t--) {
      betas[t] = behind;
      behind = products(pairs[t].powers, powers[t].map((x, y) => x * betas[t][y]));
    }
    this.computed = { alphas, betas, powers };
    return this.computed;
  }
}

/** Return the product of each row with a vector. */
function products(rows, vector) {
  return rows.map((row) => {
    let sum = 0;
    for (let i = 0; i < row.length; i++) sum += row[i] * vector[i];
    return sum;
  });
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
    const { blank, types, least } = this.fields;
    const { tokens, words, chain } = this.read(text);
    const path = this.path(chain);
    const spans = [];
    for (const [begin, end, label] of this.spans(path)) {
      const labels = path.slice(begin, end);
      const [threshold, longer] = types[label];
      let score = chain.probability(begin, labels);
      if (longer !== null && end < path.length)
        score -= chain.probability(begin, [...labels, longer]);
      if (score < threshold) {
        path.fill(0, begin, end);
        continue;
      }
      const [{ start }, { end: stop }] = [words[begin], words[end - 1]];
      score = Math.max(score, 0);
      spans.push({ start, end: stop, label, text: text.slice(start, stop), score });
    }
    for (const token of tokens) token.label = blank;
    chain.marginals().forEach((row, t) => {
      const label = row[path[t]] >= least[path[t]] ? path[t] : 0;
      words[t].label = this.labels[label];
      words[t].probability = row[label];
    });
    return { tokens, spans };
  }

  /** Return the features of a token and their weights by label, the strongest first.
   *  Throws a RangeError for a blank. */
  explain(text, token) {
    const reading = this.read(text);
    const word = reading.words.indexOf(reading.tokens[token]);
    if (word < 0) throw new RangeError(`Token ${token} is a blank, or there is none.`);
    const byLabel = (weights) => weights.map((x) => [this.labels[x.label], x.weight]);
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
    const chain = new Chain(this.features.scores(reading), this.features.pairs(reading));
    return { ...reading, chain };
  }

  /** Find the best labels, with the weight of the outside label, and names at most once. */
  path({ scores, pairs }) {
    const { once: begun, outside_weight: weight, most_tracked: most } = this.fields;
    const chain = new Chain(scores.map(([x, ...others]) => [x + weight, ...others]), pairs);
    let path = chain.labels();
    for (let tracked = 0, i = 0; i < most; i++) {
      let [names, repeated] = [0, 0];
      path.forEach((y, t) => {
        const name = begun.at(t ? path[t - 1] : -1)[y] & ~tracked;
        repeated ||= names & name;
        names |= name;
      });
      if (!repeated) break;
      tracked |= repeated;
      path = chain.relaxed(begun.map((row) => row.map((bits) => bits & tracked)));
    }
    return path;
  }

  /** Return the spans that labels encode: the words begin:end, and the type. */
  spans(path) {
    const { starts, kinds } = this.fields;
    const spans = [];
    path.forEach((y, t) => {
      const kind = starts.at(t ? path[t - 1] : -1)[y];
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
