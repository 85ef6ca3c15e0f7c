// node page_in_browser.mjs CHROMIUM PAGE PROFILE: opens a page, uses it by keyboard, prints what it shows.
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";

const [chromium, page, profile] = process.argv.slice(2);
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"];
const rest = [`--user-data-dir=${profile}`, "--remote-debugging-port=0", "about:blank"];
const child = spawn(chromium, [...flags, ...rest], { stdio: ["ignore", "ignore", "pipe"] });
const url = await new Promise((done) => {
  let log = "";
  child.stderr.on("data", (data) => {
    log += data;
    const match = /ws:\/\/\S+/.exec(log);
    if (match) done(new URL(match[0]));
  });
});
const targets = await (await fetch(`http://127.0.0.1:${url.port}/json`)).json();
const socket = new WebSocket(targets.find((x) => x.type === "page").webSocketDebuggerUrl);
await new Promise((done) => (socket.onopen = done));
const errors = [];
const waiting = new Map();
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  waiting.get(message.id)?.(message);
  if (/exceptionThrown|entryAdded/.test(message.method)) errors.push(message.params);
};
const send = (method, params = {}) =>
  new Promise((done) => {
    waiting.set(waiting.size + 1, done);
    socket.send(JSON.stringify({ id: waiting.size, method, params }));
  });
const run = async (expression) =>
  (await send("Runtime.evaluate", { expression, returnByValue: true })).result.result.value;

for (const domain of ["Page", "Runtime", "Log"]) await send(`${domain}.enable`);
await send("Emulation.setDeviceMetricsOverride", { width: 390, height: 800, deviceScaleFactor: 1, mobile: true });
const text = "I met Noah Haddad in Cairo. </script><img src=x onerror=alert(1)>";
await send("Page.navigate", { url: `${pathToFileURL(page).href}#text=${encodeURIComponent(text)}` });
while (!(await run("document.querySelector('#labelled')?.textContent"))) await new Promise((done) => setTimeout(done, 50));
await run("document.querySelector('#labelled').focus()");
for (const type of ["keyDown", "keyUp", "keyDown", "keyUp", "keyDown", "keyUp"])
  await send("Input.dispatchKeyEvent", { type, key: "ArrowRight", code: "ArrowRight" });
console.log(JSON.stringify({
  text: await run("document.querySelector('#labelled').textContent"),
  groups: await run("[...document.querySelectorAll('.group')].map((x) => x.textContent)"),
  names: await run("[...document.querySelectorAll('[role=option]')].map((x) => x.ariaLabel)"),
  why: await run("document.querySelector('#why').textContent"),
  features: await run("document.querySelectorAll('#features tr').length"),
  images: await run("document.images.length"),
  overflow: await run("document.documentElement.scrollWidth - innerWidth"),
  errors,
}));
child.kill();
process.exit(0);
