// acpx, a headless client that people use in scripts, against `berth acp`. A
// tee between the two lets the monitor see every frame.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {existsSync, readFileSync} from "node:fs";
import {dirname, join} from "node:path";
import test from "node:test";
import {fileURLToPath} from "node:url";
import {limit} from "./lib/client.mjs";
import {Home, out, patience} from "./lib/home.mjs";
import {Monitor} from "./lib/monitor.mjs";
import {Judge} from "./lib/schema.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const acpx = join(here, "node_modules", "acpx", "dist", "cli.js");
const judge = new Judge();
const quote = (word) => `'${word.replaceAll("'", "'\\''")}'`;

const write = (path, content) => `call write_file ${JSON.stringify({path, content})}`;

/** Acpx runs acpx commands in a home, all with the same agent. */
class Acpx {
  #runs = 0;

  constructor(t, home) {
    this.home = home;
    this.tee = join(home.dir, "frames.jsonl");
    this.name = t.name.replaceAll(/[^\w]+/g, "-").toLowerCase();
    this.agent = [process.execPath, join(here, "lib", "tee.mjs"), this.tee, ...home.command].map(quote).join(" ");
  }

  /** run resolves with {code, stdout, stderr}. */
  run(...args) {
    const child = this.start(...args);
    return limit(child.result, `acpx ${args.join(" ")}`);
  }

  start(...args) {
    // The process that owns a session's queue lives through the test, however slow it is: one that is about to go
    // refuses prompts. The end of the session ends it.
    const all = [acpx, "--agent", this.agent, "--cwd", this.home.project, "--ttl", "600", ...args];
    if (args.join(" ") === "sessions new") this.home.closing(() => this.run("sessions", "close")); // if the test did not
    const child = spawn(process.execPath, all, {cwd: this.home.project, env: this.home.env, stdio: ["ignore", "pipe", "pipe"]});
    const got = {stdout: "", stderr: ""};
    for (const stream of ["stdout", "stderr"]) child[stream].setEncoding("utf8").on("data", (s) => (got[stream] += s));
    const result = new Promise((done) => child.on("close", (code) => done({code, ...got})));
    this.home.closing(() => child.kill("SIGKILL"));
    return {child, result, got};
  }

  /** frames returns everything that passed between acpx and the agent. */
  frames() {
    if (!existsSync(this.tee)) return [];
    return readFileSync(this.tee, "utf8")
      .split("\n")
      .slice(0, -1) // behind the last end of a line, another process may still write
      .map((l) => JSON.parse(l));
  }

  /** seen waits for a frame of the agent that matches. */
  async seen(match, what) {
    const deadline = Date.now() + patience;
    for (;;) {
      const found = this.frames().find(({dir, line}) => dir === "<" && match(line));
      if (found) return JSON.parse(found.line);
      assert.ok(Date.now() < deadline, `no ${what}\n${JSON.stringify(this.frames().slice(-5))}`);
      await new Promise((go) => setTimeout(go, 25)); // another process writes the file
    }
  }

  /** judged holds all frames against the schema and the order of the wire. */
  judged() {
    let monitor = new Monitor(judge);
    let frames = 0;
    const faults = [];
    for (const {dir, line} of this.frames()) {
      if (dir === ">") {
        const msg = JSON.parse(line);
        // Each process of the agent is a connection of its own.
        if (msg.method === "initialize") {
          faults.push(...monitor.faults);
          monitor = new Monitor(judge);
        }
        monitor.client(msg);
      } else {
        frames++;
        monitor.agent(line);
      }
    }
    assert.deepEqual([...faults, ...monitor.faults], []);
    assert.ok(frames > 2, "acpx never spoke to the agent");
  }
}

test("acpx exec: one shot", async (t) => {
  const x = new Acpx(t, new Home(t, {script: 'text "Hello from "\ntext "the script."'}));
  const {code, stdout, stderr} = await x.run("exec", "hello");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /Hello from the script\./);
  x.judged();
});

test("acpx exec: a tool call with a permission", async (t) => {
  const home = new Home(t, {script: `${write("made.txt", "by a tool\n")}\n--- next\ntext "Wrote it."`});
  const x = new Acpx(t, home);
  const {code, stdout, stderr} = await x.run("--approve-all", "exec", "write it");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /Wrote it\./);
  assert.equal(home.read("made.txt"), "by a tool\n");
  await x.seen((l) => l.includes("session/request_permission"), "permission request");
  x.judged();
});

test("acpx exec: a denied tool call", async (t) => {
  const home = new Home(t, {script: `${write("made.txt", "x")}\n--- next\ntext "Then not."`});
  const x = new Acpx(t, home);
  const {stdout} = await x.run("--deny-all", "exec", "write it");
  assert.match(stdout, /Then not\./);
  assert.ok(!existsSync(home.path("made.txt")));
  x.judged();
});

test("acpx exec: strict JSON is nothing but frames", async (t) => {
  const x = new Acpx(t, new Home(t, {script: 'thought "Hm."\ntext "One."\ntext " Two."'}));
  const {code, stdout, stderr} = await x.run("--format", "json", "--json-strict", "exec", "hello");
  assert.equal(code, 0, stderr);
  assert.equal(stderr, "");
  const frames = stdout.trim().split("\n").map((l) => JSON.parse(l));
  assert.ok(frames.every((f) => f.jsonrpc === "2.0"), stdout);
  const said = frames.filter((f) => f.method === "session/update" && f.params.update.sessionUpdate === "agent_message_chunk");
  assert.equal(said.map((f) => f.params.update.content.text).join(""), "One. Two.");
  assert.ok(frames.some((f) => f.result?.stopReason === "end_turn"), stdout);
  x.judged();
});

test("acpx sessions: new, prompts, close", async (t) => {
  const home = new Home(t, {script: '--- next when "first"\ntext "One."\n--- next when "second"\nexpect "One."\ntext "Two."'});
  const x = new Acpx(t, home);
  let r = await x.run("sessions", "new");
  assert.equal(r.code, 0, r.stderr);
  r = await x.run("prompt", "the first");
  assert.equal(r.code, 0, r.stderr);
  assert.match(r.stdout, /One\./);
  r = await x.run("prompt", "the second");
  assert.equal(r.code, 0, r.stderr);
  assert.match(r.stdout, /Two\./);
  r = await x.run("sessions", "close");
  assert.equal(r.code, 0, r.stderr);
  const opened = x.frames().filter(({dir, line}) => dir === ">" && line.includes('"session/new"'));
  assert.equal(opened.length, 1, "the conversation did not go on in one session");
  x.judged();
});

test("acpx sessions: cancel", async (t) => {
  const home = new Home(t, {script: 'chunks 100000 "tick " every 2ms\n--- next\ntext "Back."'});
  const x = new Acpx(t, home);
  let r = await x.run("sessions", "new");
  assert.equal(r.code, 0, r.stderr);
  const prompt = x.start("prompt", "go on for ever");
  await x.seen((l) => l.includes("agent_message_chunk"), "chunk");
  r = await x.run("cancel");
  assert.equal(r.code, 0, r.stderr);
  await limit(prompt.result, "the end of the prompt");
  const end = await x.seen((l) => l.includes('"stopReason"'), "answer to the prompt");
  assert.equal(end.result.stopReason, "cancelled");
  r = await x.run("prompt", "still there?");
  assert.match(r.stdout, /Back\./);
  await x.run("sessions", "close");
  x.judged();
});

test("acpx exec: an error is told and fails", async (t) => {
  const x = new Acpx(t, new Home(t, {script: 'error quota_exhausted "the account is spent"'}));
  const {code, stdout, stderr} = await x.run("exec", "hello");
  assert.notEqual(code, 0);
  assert.match(stdout + stderr, /the account is spent/);
  x.judged();
});

test("acpx exec: the offline model without configuration", async (t) => {
  const home = new Home(t, {files: {"hello.txt": "the quick brown fox\n"}});
  const x = new Acpx(t, home);
  const {code, stdout, stderr} = await x.run("exec", "read hello.txt");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /quick brown fox/);
  x.judged();
});
