// Ask the search of a built site as its pages do: `node search.js SITE QUERY...` prints, for each
// query, the address of the page or section that is listed first.
const fs = require("fs"), path = require("path");
const [site, ...queries] = process.argv.slice(2);
const workers = path.join(site, "assets/javascripts/workers");
const [name] = fs.readdirSync(workers).filter((file) => /^search\..*\.js$/.test(file));
const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf8"));
let answer;
globalThis.self = globalThis;
globalThis.addEventListener = (event, listener) => { answer = listener; };
globalThis.postMessage = ({ type, data }) => {
  if (type === 3) console.log(data.items.length ? data.items[0][0].location : "");
};
(0, eval)(fs.readFileSync(path.join(workers, name), "utf8"));
(async () => {
  await answer({ data: { type: 0, data: { ...index, options: {} } } });
  for (const query of queries) await answer({ data: { type: 2, data: query } });
})();
