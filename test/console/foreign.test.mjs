// Pages that are not the gateway's own, in headless Chromium, with everything
// that a page can send. They even know a token.
import assert from "node:assert/strict";
import {createServer} from "node:http";
import {after, before, describe, test} from "node:test";
import {Daemon, until} from "./lib/daemon.mjs";
import {browser, missing} from "./lib/page.mjs";

const skip = await missing();

/** attack tries all of it from the page it runs in, and returns what came of each. */
async function attack(host, token) {
  const first = JSON.stringify({jsonrpc: "2.0", id: 1, method: "initialize", params: {protocolVersion: 1}});
  const at = (path) => `http://${host}${path}`;
  const withToken = `/acp?token=${token}`;
  const json = {"Content-Type": "application/json"};
  const asked = (path, options) => fetch(at(path), options).then((r) => (r.type === "opaque" ? "opaque" : r.status), () => "refused");
  const event = (target, good, bad) => new Promise((done) => {
    target[good] = () => done("open");
    for (const name of bad) target[name] = () => done("refused");
  });
  const socket = (path, protocols) => event(new WebSocket(`ws://${host}${path}`, protocols), "onopen", ["onerror", "onclose"]);
  const source = async () => {
    const s = new EventSource(at(withToken));
    const came = await event(s, "onopen", ["onerror"]);
    s.close();
    return came;
  };
  const xhr = () => {
    const x = new XMLHttpRequest();
    x.open("POST", at(withToken));
    const came = event(x, "onload", ["onerror"]).then((how) => (how === "open" ? x.status : how));
    x.send(first);
    return came;
  };
  const form = () => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.name = "answer";
    document.body.append(frame);
    const f = document.createElement("form");
    Object.assign(f, {method: "POST", enctype: "text/plain", target: "answer", action: at(withToken)});
    const field = document.createElement("input");
    field.name = first;
    f.append(field);
    document.body.append(f);
    frame.onload = () => done("sent");
    f.submit();
  });
  return {
    "fetch": await asked("/acp", {headers: {Authorization: `Bearer ${token}`}}),
    "fetch with the token in the address": await asked(withToken),
    "fetch of the console": await asked("/"),
    "fetch of the metrics": await asked(`/metrics?token=${token}`),
    "POST": await asked("/acp", {method: "POST", headers: {Authorization: `Bearer ${token}`, ...json}, body: first}),
    "POST with the token in the address": await asked(withToken, {method: "POST", headers: json, body: first}),
    "POST that nobody is asked about before": await asked(withToken, {method: "POST", mode: "no-cors", headers: {"Content-Type": "text/plain"}, body: first}),
    "beacon": (navigator.sendBeacon(at(withToken), first), "sent"),
    "XMLHttpRequest": await xhr(),
    "EventSource": await source(),
    "WebSocket": await socket("/acp", ["acp.v1"]),
    "WebSocket with the token": await socket("/acp", ["acp.v1", `bearer.${token}`]),
    "WebSocket with the token in the address": await socket(withToken, []),
    "form": await form(),
  };
}

describe("foreign pages", {skip, timeout: 180_000}, () => {
  let d, b, token;
  const servers = [];

  before(async (t) => {
    d = new Daemon(undefined, {script: "text \"hello\"\n"});
    token = d.token("--name", "known");
    await d.start();
    b = await browser({after: (end) => servers.push({close: end})});
  });
  after(async () => {
    for (const s of servers.reverse()) await s.close();
    await d.end();
  });

  const page = async (head = {}) => {
    const server = createServer((req, res) => {
      res.writeHead(200, {"Content-Type": "text/html", ...head});
      res.end("<title>elsewhere</title><body></body>");
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    servers.push({close: () => new Promise((done) => { server.closeAllConnections(); server.close(done); })});
    return server.address().port;
  };
  const tried = async (address, host) => {
    const seen = d.log.length;
    const tab = await b.newPage();
    await tab.goto(address);
    const came = await tab.evaluate(attack, host, token);
    await tab.close();
    await until(() => d.log.slice(seen).includes("request refused"), "the log of a refusal");
    const log = d.log.slice(seen);
    assert.ok(!log.includes(token), "the log holds the token");
    assert.doesNotMatch(log, /client connected/);
    for (const line of log.split("\n").filter((l) => l.includes("request refused"))) assert.match(line, /status=403/);
    return came;
  };
  const nothing = {
    "fetch": "refused", "fetch with the token in the address": "refused", "fetch of the console": "refused", "fetch of the metrics": "refused",
    "POST": "refused", "POST with the token in the address": "refused", "POST that nobody is asked about before": "opaque",
    "beacon": "sent", "XMLHttpRequest": "refused", "EventSource": "refused", "WebSocket": "refused", "WebSocket with the token": "refused",
    "WebSocket with the token in the address": "refused", "form": "sent",
  };

  test("of another site", async () => {
    const {host} = new URL(d.url);
    assert.deepEqual(await tried(`http://evil.test:${await page()}/`, host), nothing);
  });

  test("of another port of this machine", async () => {
    const {host} = new URL(d.url);
    assert.deepEqual(await tried(`http://127.0.0.1:${await page()}/`, host), nothing);
  });

  test("of no site", async () => {
    const {host} = new URL(d.url);
    const port = await page({"Content-Security-Policy": "sandbox allow-scripts allow-forms"}); // its origin is null
    assert.deepEqual(await tried(`http://127.0.0.1:${port}/`, host), nothing);
  });

  test("of a site whose name was made to point here", async () => {
    const {port} = new URL(d.url);
    const came = await tried(`http://rebound.test:${port}/`, `rebound.test:${port}`);
    for (const [name, how] of Object.entries(came)) assert.ok([403, "refused", "sent"].includes(how), `${name}: ${how}`);
  });
});
