// Appended to the script of the page: prints what its functions return for a model and a text.
import { readFileSync } from "node:fs";
const json = readFileSync(process.argv[2], "utf8");
const model = new Model(json);
const text = "I met Noah Haddad in Cairo. \u{1f600}\n</script><img src=x onerror=alert(1)>";
const parts = partsOf(text, model.label(text), model.labels);
const joined = (list) => list.map((x) => (x.parts ? joined(x.parts) : x.text)).join("");
const refusal = (damaged) => {
  try {
    new Model(damaged);
  } catch ({ message }) {
    return message.includes("is no model of");
  }
};
console.log(JSON.stringify({
  refused: ["", "[1, 2]", json.slice(0, -20), json.replace("lower", "upper")].map(refusal),
  isWhole: joined(blocksOf(parts).flatMap((x) => x.parts)) === text && textOf(fragmentOf(text)) === text,
  labels: parts.filter((x) => x.parts).map((x) => [x.label, joined(x.parts)]),
  odd: [textOf("#text=%E0%A4%A"), textOf("#other"), whole("a\ud800b")],
  total: probabilities(model, text, 2).reduce((sum, [, p]) => sum + p, 0),
  reasons: reasonsFor(model, text, 2, ["B-PERSON", "O"]).length,
}));
