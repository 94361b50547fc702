// An agent driven by the official TypeScript client, with a monitor between
// them: a process of its own, or, with BERTH_TRANSPORT=http or ws, a daemon.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {createWriteStream} from "node:fs";
import {join} from "node:path";
import {PassThrough, Readable, Writable} from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import {Gateway} from "./gateway.mjs";
import {out, patience, slack} from "./home.mjs";
import {Monitor} from "./monitor.mjs";
import {Judge} from "./schema.mjs";

export const M = acp.methods;

/** transport is how the clients of this run reach the agent. */
export const transport = process.env.BERTH_TRANSPORT ?? "stdio";
const judge = new Judge();

/** limit fails a promise that takes longer than it may. */
export function limit(promise, what, ms = patience) {
  let timer;
  const late = new Promise((_, no) => {
    timer = setTimeout(() => no(new Error(`${what}: nothing after ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** choose picks the option of a kind in answer to a permission request. */
export const choose = (kind) => (params) => {
  const option = params.options.find((o) => o.kind === kind);
  assert.ok(option, `no option of kind ${kind} in ${JSON.stringify(params.options)}`);
  return {outcome: {outcome: "selected", optionId: option.optionId}};
};

let runs = 0;

export class Client {
  updates = [];
  asked = []; // permission requests
  files = []; // fs requests
  stderr = "";
  #waiting = [];

  /**
   * Starts the agent of a home. permission answers session/request_permission;
   * files, a map of path to text, makes the client offer its buffers.
   */
  static async open(t, home, options = {}) {
    const gateway = transport === "stdio" ? undefined : await Gateway.of(home);
    const c = new Client(t, home, {...options, gateway});
    c.init = await c.request(M.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientInfo: {name: "interop", version: "1"},
      clientCapabilities: {
        fs: {readTextFile: !!options.buffers, writeTextFile: !!options.buffers},
        terminal: false,
        ...options.capabilities,
      },
    });
    return c;
  }

  constructor(t, home, {permission = choose("allow_once"), buffers, env = {}, gateway} = {}) {
    this.home = home;
    this.gateway = gateway;
    this.monitor = new Monitor(judge);
    const name = `${transport === "stdio" ? "" : `${transport}-`}${t.name}-${++runs}`.replaceAll(/[^\w]+/g, "-").toLowerCase();
    this.log = createWriteStream(join(out, `${name}.jsonl`));
    if (!gateway) this.#spawn({...home.env, ...env});
    const app = acp
      .client({name: "interop"})
      .onNotification(M.client.session.update, ({params}) => this.#update(params))
      .onRequest(M.client.session.requestPermission, ({params, signal}) => {
        this.asked.push(params);
        return permission(params, signal);
      })
      .onRequest(M.client.fs.readTextFile, ({params}) => {
        this.files.push({method: "read", ...params});
        return {content: buffers.get(params.path) ?? ""};
      })
      .onRequest(M.client.fs.writeTextFile, ({params}) => {
        this.files.push({method: "write", ...params});
        buffers.set(params.path, params.content);
        return {};
      });
    this.connection = app.connect(gateway ? this.#remote() : this.#stdio());
    home.closing(() => this.close());
  }

  #spawn(env) {
    const [command, ...args] = this.home.command;
    this.child = spawn(command, args, {stdio: ["pipe", "pipe", "pipe"], cwd: this.home.project, env});
    this.child.stderr.setEncoding("utf8").on("data", (s) => (this.stderr += s));
    this.exit = new Promise((done) => this.child.on("exit", (code, signal) => done({code, signal})));
    this.ended = new Promise((done) => this.child.stdout.on("end", done));
  }

  // #remote is a connection to the daemon; what passes is noted on both sides.
  #remote() {
    const {readable, writable} = this.gateway.stream(transport);
    this.link = writable.getWriter();
    const seen = new TransformStream({
      transform: (msg, to) => {
        const line = JSON.stringify(msg);
        this.#note("<", line);
        this.monitor.agent(line);
        to.enqueue(msg);
      },
    });
    readable.pipeTo(seen.writable).catch(() => {}); // the daemon may be killed
    return {readable: seen.readable, writable: this.#noted(this.link)};
  }

  #noted(writer) {
    return new WritableStream({
      write: (msg) => {
        this.#note(">", JSON.stringify(msg));
        this.monitor.client(msg);
        return writer.write(msg);
      },
      close: () => writer.close(),
      abort: (e) => writer.abort(e),
    });
  }

  #stdio() {
    // The agent's bytes go to the client as they are and, line by line, to the
    // monitor.
    const through = new PassThrough();
    let rest = Buffer.alloc(0);
    this.child.stdout.on("data", (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      for (let i; (i = rest.indexOf(10)) >= 0; rest = rest.subarray(i + 1)) {
        const line = new TextDecoder("utf-8", {fatal: true}).decode(rest.subarray(0, i));
        this.#note("<", line);
        this.monitor.agent(line);
      }
    });
    this.child.stdout.on("end", () => {
      if (rest.length > 0) this.monitor.faults.push(`the output ends in the middle of a line: ${rest}`);
    });
    this.child.stdout.pipe(through);
    const {readable, writable} = acp.ndJsonStream(Writable.toWeb(this.child.stdin), Readable.toWeb(through));
    return {readable, writable: this.#noted(writable.getWriter())};
  }

  #note(dir, line) {
    this.log.write(`{"dir":"${dir}","msg":${line}}\n`);
  }

  #update(params) {
    this.updates.push(params);
    this.#waiting = this.#waiting.filter(({match, done}) => !(match(params.update) && (done(params.update), true)));
  }

  request(method, params, options) {
    return limit(this.connection.agent.request(method, params, options), method);
  }

  notify(method, params) {
    return this.connection.agent.notify(method, params);
  }

  /** refused returns the error a request is answered with. */
  async refused(method, params) {
    try {
      const result = await this.request(method, params);
      return assert.fail(`${method} succeeded: ${JSON.stringify(result)}`);
    } catch (e) {
      if (e.code === undefined) throw e;
      return e;
    }
  }

  async session(params = {}) {
    const {sessionId} = await this.request(M.agent.session.new, {cwd: this.home.project, mcpServers: [], ...params});
    return sessionId;
  }

  prompt(sessionId, ...blocks) {
    const prompt = blocks.map((b) => (typeof b === "string" ? {type: "text", text: b} : b));
    return this.request(M.agent.session.prompt, {sessionId, prompt});
  }

  /** next resolves with the next update that matches. */
  next(match, what = "an update", ms = undefined) {
    return limit(new Promise((done) => this.#waiting.push({match, done})), what, ms);
  }

  /** text joins what the agent said since the given number of updates. */
  text(from = 0, kind = "agent_message_chunk") {
    return this.updates
      .slice(from)
      .filter(({update}) => update.sessionUpdate === kind)
      .map(({update}) => update.content.text)
      .join("");
  }

  of(kind, from = 0) {
    return this.updates.slice(from).map((u) => u.update).filter((u) => u.sessionUpdate === kind);
  }

  /** kill ends the agent as a crash would. */
  async kill() {
    this.killed = true;
    if (this.gateway) {
      await this.gateway.kill();
    } else {
      this.child.kill("SIGKILL");
      await this.exit;
    }
    this.connection.close();
  }

  /** restart ends the agent's process in an orderly way; the next client starts another. */
  async restart() {
    await this.close();
    await this.gateway?.stop();
  }

  /** close ends the input, waits for the agent and judges all it sent. */
  async close() {
    if (this.closed) return;
    this.closed = true;
    if (this.gateway) {
      await this.#hangUp();
      return;
    }
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill("SIGKILL"), patience);
    const start = performance.now();
    const {code, signal} = await this.exit;
    clearTimeout(timer);
    await this.ended;
    this.connection.close();
    await new Promise((done) => this.log.end(done));
    if (!this.killed) {
      assert.equal(signal, null, `the agent did not exit at the end of its input\n${this.stderr}`);
      assert.equal(code, 0, `the agent exited with ${code}\n${this.stderr}`);
      assert.ok(performance.now() - start < 3_000 + slack, "the agent took more than 3 s to exit");
      this.monitor.end();
    }
    assert.deepEqual(this.monitor.faults, []);
  }

  // #hangUp ends the connection in an orderly way and judges all that came.
  async #hangUp() {
    if (!this.killed) {
      await limit(this.link.close(), "the end of the connection");
      this.monitor.end();
    }
    this.connection.close();
    await new Promise((done) => this.log.end(done));
    assert.deepEqual(this.monitor.faults, []);
  }
}
