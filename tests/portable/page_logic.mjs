// Appended to the script of the page: prints what its functions return for a model and a text.
import { readFileSync } from "node:fs";
const model = new Model(readFileSync(process.argv[2], "utf8"));
const text = "I met Noah Haddad in Cairo. \u{1f600}\n</script><img src=x onerror=alert(1)>";
const parts = partsOf(text, model.label(text), model.labels);
const joined = (list) => list.map((x) => (x.parts ? joined(x.parts) : x.text)).join("");
console.log(JSON.stringify({
  isWhole: joined(parts) === text && textOf(fragmentOf(text)) === text,
  labels: parts.filter((x) => x.parts).map((x) => [x.label, joined(x.parts)]),
  odd: [textOf("#text=%E0%A4%A"), textOf("#other"), whole("a\ud800b")],
  total: probabilities(model, text, 2).reduce((sum, [, p]) => sum + p, 0),
  reasons: reasonsFor(model, text, 2, ["B-PERSON", "O"]).length,
}));
