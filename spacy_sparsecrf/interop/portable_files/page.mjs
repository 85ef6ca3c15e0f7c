
// The page. The functions before `start` need no document.

/** Return the parts of a labelled text: blanks, words, and spans with their words. */
function partsOf(text, { tokens, spans }, labels) {
  const parts = [];
  let [end, k, inside] = [0, 0, parts];
  tokens.forEach((token, i) => {
    if (inside !== parts && token.start >= spans[k].end) [inside, k] = [parts, k + 1];
    if (token.start > end) inside.push({ text: text.slice(end, token.start) });
    const span = spans[k];
    if (span && inside === parts && token.start >= span.start) {
      inside = [];
      parts.push({ label: span.label, probability: span.score, parts: inside });
    }
    const isBlank = !token.text.trim() || !labels.includes(token.label);
    inside.push(isBlank ? { text: token.text } : { ...token, index: i });
    end = token.end;
  });
  return parts;
}

/** Return parts in blocks: lines, and pieces of long lines, of which a browser draws those on the
 *  screen. key: what a block shows. */
function blocksOf(parts) {
  const key = ({ text, label, probability, parts = [] }) =>
    `${[text, label, probability && shown(probability), ...parts.map(key)].join("\t")}\n`;
  const blocks = [];
  let block = null;
  for (const part of parts) {
    if (!block) blocks.push((block = { key: "", parts: [] }));
    block.key += key(part);
    block.parts.push(part);
    const n = block.parts.length;
    if (/\n/.test(part.text) || (n > 99 && part.text === ".") || n > 299) block = null;
  }
  return blocks;
}

function shown(p) {
  return p.toFixed(2);
}

/** Return labels of a word with their probabilities, the most probable first. */
function probabilities(model, text, index) {
  const { tokens, words, chain } = model.read(text);
  const marginals = chain.marginals()[words.indexOf(tokens[index])];
  return model.labels.map((label, y) => [label, marginals[y]]).sort((a, b) => b[1] - a[1]);
}

/** Return features, their weights for two labels, and the difference, the largest first. */
function reasonsFor(model, text, index, [label, other]) {
  return model
    .explain(text, index)
    .map(([name, weights]) => [name, weights[label] ?? 0, weights[other] ?? 0])
    .map(([name, a, b]) => [name, a, b, a - b])
    .filter((row) => row[1] || row[2])
    .sort((a, b) => Math.abs(b[3]) - Math.abs(a[3]));
}

/** Return the text of an address's fragment, and the fragment of a text. */
function textOf(fragment) {
  if (!fragment.startsWith("#text=")) return null;
  const encoded = fragment.slice(6);
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

function fragmentOf(text) {
  return `#text=${encodeURIComponent(text)}`;
}

/** Replace halves of surrogate pairs, which keeps offsets. */
function whole(text) {
  return text.replace(/\p{Cs}/gu, "\ufffd");
}

function start() {
  const at = (id) => document.getElementById(id);
  const model = new Model(at("model").textContent);
  const { fields } = model;
  const hasSpans = fields.kinds.some(Boolean);
  const names = hasSpans ? [...new Set(fields.kinds)].filter(Boolean) : model.labels;
  const area = at("text");
  const list = at("labelled");
  let [text, labelled, drawn, selected, frame] = ["", null, [], -1, 0];

  /** Make an element of a part of the text. */
  function element(part) {
    if (!part.parts && part.index === undefined) return document.createTextNode(part.text);
    const node = document.createElement("span");
    const name = `${part.label} ${shown(part.probability)}`;
    if (part.parts || !hasSpans) {
      node.className = part.parts ? "group" : "tagged";
      node.classList.toggle("unsure", part.probability < 0.5);
      node.dataset.label = name;
      node.style.setProperty("--h", (names.indexOf(part.label) * 137.5 + 210) % 360);
    }
    node.setAttribute("role", part.parts ? "group" : "option");
    node.setAttribute("aria-label", part.parts ? name : `${part.text}, ${part.label}, ${shown(part.probability)}`);
    if (part.parts) node.append(...part.parts.map(element));
    else node.append(part.text);
    return node;
  }

  /** Draw the blocks that differ from those on the page. */
  function draw() {
    const blocks = blocksOf(partsOf(text, labelled, model.labels));
    const most = Math.min(blocks.length, drawn.length);
    let [ahead, behind] = [0, 0];
    while (ahead < most && blocks[ahead].key === drawn[ahead].key) ahead++;
    while (behind < most - ahead && blocks.at(-1 - behind).key === drawn.at(-1 - behind).key) behind++;
    const fresh = blocks.slice(ahead, blocks.length - behind);
    for (const block of fresh) {
      block.node = document.createElement("div");
      block.node.setAttribute("role", "presentation");
      block.node.append(...block.parts.map(element));
    }
    const old = drawn.splice(ahead, drawn.length - ahead - behind, ...fresh);
    for (const { node } of old) node.remove();
    const nodes = fresh.map(({ node }) => node);
    if (ahead) drawn[ahead - 1].node.after(...nodes);
    else list.prepend(...nodes);
  }

  const options = () => [...list.querySelectorAll("[role=option]")];
  const words = () => labelled.tokens.map((_, i) => i).filter((i) => model.labels.includes(labelled.tokens[i].label) && labelled.tokens[i].text.trim());

  function label() {
    text = whole(area.value);
    if (selected >= 0) select(-1);
    labelled = model.label(text);
    draw();
    const n = hasSpans ? labelled.spans.length : words().length;
    const noun = hasSpans ? "span" : "word";
    at("count").textContent = `${n} ${noun}${n === 1 ? "" : "s"}`;
    at("link").setAttribute("href", fragmentOf(text));
  }

  /** Show the reasons for the label of a word, by its number among the words; -1: of none. */
  function select(number) {
    list.querySelector("[aria-selected=true]")?.removeAttribute("aria-selected");
    list.removeAttribute("aria-activedescendant");
    list.querySelector("#word")?.removeAttribute("id");
    selected = number;
    at("reasons").hidden = number < 0;
    if (number < 0) return;
    const option = options()[number];
    option.setAttribute("aria-selected", "true");
    option.id = "word";
    option.scrollIntoView({ block: "nearest" });
    list.setAttribute("aria-activedescendant", "word");
    const index = words()[number];
    const token = labelled.tokens[index];
    at("why").textContent = `${token.text}: ${token.label} ${shown(token.probability)}`;
    const others = probabilities(model, text, index).filter(([x]) => x !== token.label);
    at("other").replaceChildren(...others.map(([x, p]) => new Option(`${x} ${shown(p)}`, x)));
    compare();
  }

  /** Show the features for the label and against another one. */
  function compare() {
    const index = words()[selected];
    const pair = [labelled.tokens[index].label, at("other").value];
    at("first").textContent = pair[0];
    at("second").textContent = pair[1];
    const signed = (x) => (x > 0 ? "+" : "") + x.toFixed(3);
    const rows = reasonsFor(model, text, index, pair).map(([name, ...weights]) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.dir = "auto";
      head.textContent = name;
      row.append(head);
      for (const weight of weights) row.insertCell().textContent = signed(weight);
      return row;
    });
    at("features").replaceChildren(...rows);
  }

  function keyed(event) {
    const n = options().length;
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -n, End: n };
    if (event.key === "Escape") select(-1);
    if (!(event.key in steps) || !n) return;
    event.preventDefault();
    select(Math.min(Math.max(selected + steps[event.key], 0), n - 1));
  }

  function open() {
    area.value = textOf(location.hash) ?? JSON.parse(at("example").textContent);
    label();
  }

  document.title = `${fields.component}: label a text`;
  at("title").textContent = `Label a text with ${fields.component}`;
  at("about").textContent = `The model runs in this page; no text leaves it. Language ${fields.lang}, labels ${names.slice(0, 20).join(", ")}${names.length > 20 ? ", ..." : ""}.`;
  area.addEventListener("input", () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(label);
  });
  list.addEventListener("click", ({ target }) => select(options().indexOf(target.closest("[role=option]"))));
  list.addEventListener("keydown", keyed);
  at("other").addEventListener("change", compare);
  addEventListener("hashchange", open);
  open();
}

if (globalThis.document) start();
