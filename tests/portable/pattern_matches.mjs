// node pattern_matches.mjs: hashes of the matches of expressions in texts, from JSON.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
const { patterns, contexts, codes } = JSON.parse(readFileSync(0, "utf8"));
const answers = {};
for (const [name, text] of Object.entries(patterns)) {
  const pattern = new RegExp(text, "u");
  const hash = createHash("sha256");
  for (const [head, tail] of contexts) {
    const ends = codes.map((code) => {
      const match = pattern.exec(head + String.fromCodePoint(code) + tail);
      return match ? `${match.index} ${match[0].length}` : "";
    });
    hash.update(ends.join("\n"));
  }
  answers[name] = hash.digest("hex");
}
console.log(JSON.stringify(answers));
