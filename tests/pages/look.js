// Of each frame: elements that go over its edge or are cut; what is found by search and sorting.
const out = [];
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, view = frame.contentWindow, over = [];
  for (const group of page.querySelectorAll("details")) group.open = true;
  const width = page.documentElement.clientWidth;
  if (page.documentElement.scrollWidth > width) over.push("page");
  for (const node of page.body.querySelectorAll("*")) {
    const box = node.getBoundingClientRect(), scrolls = node.closest(".scroll");
    const told = node.closest("caption") && node.tagName === "SPAN";
    if (scrolls && scrolls !== node && !told) continue;
    if (box.right > width + 1 || box.left < -1) over.push(node.outerHTML.slice(0, 80));
    const cut = node.scrollWidth > node.clientWidth + 1;
    if (cut && /^H[1-3]$/.test(node.tagName)) over.push(node.tagName);
  }
  const cards = () => [...page.querySelectorAll("main section")].filter(x => !x.hidden).length;
  const type = (id, value) => { const box = page.getElementById(id); box.value = value;
    box.dispatchEvent(new view.Event("input")); box.dispatchEvent(new view.Event("change")); };
  const ground = view.getComputedStyle(page.body).backgroundColor;
  const tops = [...page.querySelectorAll("main section")].map(x => x.getBoundingClientRect().top);
  const found = {width, over, ground, all: cards(), row: tops.filter(x => x === tops[0]).length};
  if (!page.getElementById("word")) { out.push(found); continue; }
  type("word", "a10"); found.a10 = cards(); type("word", "zzz"); found.zzz = cards();
  found.open = page.querySelectorAll("main details:not([hidden])").length;
  type("word", ""); type("label", "LOC"); found.loc = cards(); type("label", "");
  const head = page.querySelector("section th[aria-sort]:last-child button");
  const column = () => [...head.closest("table").tBodies[0].rows].map(x => x.cells[2].textContent);
  if (head) { head.click(); found.falling = column(); head.click(); found.rising = column(); }
  out.push(found);
}
document.getElementById("out").textContent = JSON.stringify(out);
