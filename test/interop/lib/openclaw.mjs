// A real OpenClaw Gateway with a scripted model service behind it. It is not
// among the dependencies: OPENCLAW names a folder with node_modules/openclaw,
// and OPENCLAW_NODE a Node that is new enough for it.
import {spawn} from "node:child_process";
import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {createServer as createHTTP} from "node:http";
import {connect, createServer} from "node:net";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {binary, Home} from "./home.mjs";

const entry = join(process.env.OPENCLAW ?? "", "node_modules", "openclaw", "openclaw.mjs");

/** missing says why there is no Gateway here, undefined when there is. */
export function missing() {
  if (!process.env.OPENCLAW) return "OPENCLAW names no folder with node_modules/openclaw";
  return existsSync(entry) ? undefined : `${entry} is not there`;
}

/** play is a prompt whose run follows steps: a list for each call of the model. */
export const play = (...calls) => `play @@${JSON.stringify(calls)}`;

const words = (m) => (typeof m.content === "string" ? m.content : (m.content ?? []).map((c) => c.text ?? "").join("\n"));

// stepsOf finds what the model does in a call: the script is in the newest
// prompt that has one, and each message of the model behind it is one call.
function stepsOf({messages = []}) {
  let calls = 0;
  for (const m of messages.toReversed()) {
    if (m.role === "assistant") calls++;
    if (m.role !== "user" || !words(m).includes("@@")) continue;
    const text = words(m);
    const script = JSON.parse(text.slice(text.indexOf("@@") + 2, text.lastIndexOf("]") + 1));
    return script[calls] ?? script.at(-1);
  }
  return [{text: "ok"}];
}

async function answer(body, res) {
  const steps = stepsOf(body);
  const failure = steps.find((s) => s.status);
  if (failure) {
    res.writeHead(failure.status, {"content-type": "application/json"});
    return res.end(JSON.stringify({error: {message: failure.message ?? "scripted", type: "invalid_request_error"}}));
  }
  const head = {id: "play", object: "chat.completion.chunk", created: 1, model: body.model};
  const usage = {prompt_tokens: 1200, completion_tokens: 30, total_tokens: 1230};
  if (!body.stream) {
    res.writeHead(200, {"content-type": "application/json"});
    return res.end(JSON.stringify({...head, object: "chat.completion", choices: [{index: 0, message: {role: "assistant", content: "ok"}, finish_reason: "stop"}], usage}));
  }
  res.writeHead(200, {"content-type": "text/event-stream"});
  const say = (o) => res.write(`data: ${JSON.stringify({...head, ...o})}\n\n`);
  const delta = (d, finish_reason = null) => say({choices: [{index: 0, delta: d, finish_reason}]});
  let finish = "stop";
  let calls = 0;
  for (const s of steps) {
    for (const p of [].concat(s.think ?? [])) delta({reasoning_content: p});
    for (const p of [].concat(s.text ?? [])) {
      delta({content: p});
      if (s.every) await new Promise((go) => setTimeout(go, s.every));
    }
    if (s.tool) {
      const [name, args] = s.tool;
      delta({tool_calls: [{index: calls, id: `call_${Date.now()}_${calls++}`, type: "function", function: {name, arguments: JSON.stringify(args)}}]});
      finish = "tool_calls";
    }
    finish = s.finish ?? finish;
  }
  delta({}, finish);
  say({choices: [], usage});
  res.end("data: [DONE]\n\n");
}

const listen = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));

/** Gateway is one that serves, with the model service behind it. */
export class Gateway {
  token = "interop-token-0123456789";

  static async start(t) {
    const g = new Gateway();
    g.dir = mkdtempSync(join(tmpdir(), "berth-openclaw-"));
    g.workspace = join(g.dir, "workspace");
    mkdirSync(g.workspace);
    const model = createHTTP(async (req, res) => {
      let body = "";
      for await (const c of req) body += c;
      await answer(JSON.parse(body || "{}"), res);
    });
    const modelPort = await listen(model);
    const free = createServer();
    g.port = await listen(free);
    await new Promise((done) => free.close(done));
    const one = (id, reasoning) => ({
      id, name: id, reasoning, input: ["text", "image"], cost: {input: 0, output: 0, cacheRead: 0, cacheWrite: 0}, contextWindow: 1_000_000, maxTokens: 65536,
    });
    writeFileSync(join(g.dir, "openclaw.json"), JSON.stringify({
      gateway: {mode: "local", bind: "loopback", port: g.port, auth: {mode: "token", token: g.token}},
      tools: {exec: {security: "allowlist", ask: "always"}},
      agents: {defaults: {workspace: g.workspace, model: {primary: "play/thinker"}}},
      models: {mode: "merge", providers: {play: {
        baseUrl: `http://127.0.0.1:${modelPort}/v1`, apiKey: "x", api: "openai-completions", models: [one("thinker", true), one("plain", false)],
      }}},
    }));
    const child = spawn(process.env.OPENCLAW_NODE ?? "node", [entry, "gateway", "run"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH, HOME: g.dir, OPENCLAW_STATE_DIR: g.dir, OPENCLAW_CONFIG_PATH: join(g.dir, "openclaw.json"), OPENCLAW_OFFLINE: "1",
        OPENCLAW_DISABLE_BONJOUR: "1", OPENCLAW_NO_AUTO_UPDATE: "1", OPENCLAW_SKIP_CHANNELS: "1", OPENCLAW_NO_RESPAWN: "1",
      },
    });
    let log = "";
    const ready = new Promise((done, no) => {
      const hear = (s) => {
        log += s;
        if (/\[gateway\]\S* \S*ready(\x1b|\s|$)/m.test(log)) done();
      };
      child.stdout.setEncoding("utf8").on("data", hear);
      child.stderr.setEncoding("utf8").on("data", hear);
      child.on("exit", (code) => no(new Error(`the gateway ended with ${code}:\n${log.slice(-2000)}`)));
      setTimeout(() => no(new Error(`the gateway does not serve:\n${log.slice(-2000)}`)), 150_000).unref();
    });
    t.after(async () => {
      child.kill("SIGKILL");
      model.closeAllConnections();
      model.close();
      rmSync(g.dir, {recursive: true, force: true, maxRetries: 5});
    });
    await ready;
    return g;
  }

  /** home is one of a test, with a bridge to this Gateway, or to a way there. */
  home(t, port = this.port, ...flags) {
    const home = new Home(t);
    const args = ["bridge", "--protocol", "openclaw", "--url", `ws://127.0.0.1:${port}`, "--config-dir", home.config, "--data-dir", home.data, ...flags];
    const env = {...home.env, OPENCLAW_GATEWAY_TOKEN: this.token};
    Object.defineProperty(home, "command", {value: [binary(), ...args]});
    Object.defineProperty(home, "env", {value: env});
    return home;
  }

  /** way is a way to the Gateway that can be cut. */
  async way(t) {
    const open = new Set();
    const server = createServer((near) => {
      const far = connect(this.port, "127.0.0.1");
      for (const [a, b] of [[near, far], [far, near]]) {
        open.add(a);
        a.on("error", () => {}).on("close", () => {
          open.delete(a);
          b.destroy();
        });
        a.pipe(b);
      }
    });
    const port = await listen(server);
    const cut = () => open.forEach((c) => c.resetAndDestroy());
    t.after(() => {
      server.close();
      cut();
    });
    return {port, cut};
  }

  read(name) {
    return readFileSync(join(this.workspace, name), "utf8");
  }
}
