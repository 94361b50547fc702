// A real OpenClaw Gateway behind `berth bridge --protocol openclaw`, driven by
// the official TypeScript client and by acpx. See lib/openclaw.mjs for how to
// have one.
import assert from "node:assert/strict";
import {execFile} from "node:child_process";
import {existsSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import test from "node:test";
import {fileURLToPath} from "node:url";
import {promisify} from "node:util";
import {choose, Client, limit, M} from "./lib/client.mjs";
import {slack} from "./lib/home.mjs";
import {Gateway, missing, play} from "./lib/openclaw.mjs";

const acpx = join(dirname(fileURLToPath(import.meta.url)), "node_modules", "acpx", "dist", "cli.js");
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const patience = 90_000; // a Gateway takes its time
const request = (c, method, params) => limit(c.connection.agent.request(method, params), method, patience);

test("an OpenClaw Gateway", {skip: missing(), timeout: 900_000}, async (t) => {
  const g = await Gateway.start(t);
  const open = (c, cwd = g.workspace) => request(c, M.agent.session.new, {cwd, mcpServers: []});
  const ask = (c, sessionId, ...prompt) =>
    request(c, M.agent.session.prompt, {sessionId, prompt: prompt.map((p) => (typeof p === "string" ? {type: "text", text: p} : p))});
  const text = (c, kind = "agent_message_chunk") => c.of(kind).map((u) => u.content.text).join("");

  await t.test("plays a turn: thoughts, text around a tool, a file read", async (t) => {
    writeFileSync(join(g.workspace, "notes.txt"), "the secret is 42\n");
    const c = await Client.open(t, g.home(t));
    const {sessionId, configOptions, modes} = await open(c);
    assert.ok(configOptions.some((o) => o.id === "model") && modes.availableModes.length > 2);
    const {stopReason} = await ask(c, sessionId, play(
      [{think: ["let me ", "see"]}, {text: ["I look ", "first."]}, {tool: ["read", {path: "notes.txt"}]}], [{think: "more"}, {text: ["It says ", "é€😀 42."]}],
    ));
    assert.equal(stopReason, "end_turn");
    assert.equal(text(c), "I look first.It says é€😀 42.");
    assert.match(text(c, "agent_thought_chunk"), /let me see.*more/);
    const [call] = c.of("tool_call");
    assert.equal(call.kind, "read");
    assert.deepEqual(call.locations, [{path: join(g.workspace, "notes.txt")}]);
    assert.match(JSON.stringify(c.of("tool_call_update").at(-1)), /the secret is 42/);
    await c.close();
  });

  await t.test("asks for permission, and takes yes and no", async (t) => {
    for (const [kind, made] of [["allow_once", true], ["reject_once", false]]) {
      const c = await Client.open(t, g.home(t), {permission: choose(kind)});
      const {sessionId} = await open(c);
      await ask(c, sessionId, play([{tool: ["exec", {command: `touch ${kind}.txt`}]}], [{text: "done"}]));
      assert.equal(c.asked.length, 1);
      assert.equal(c.asked[0].toolCall.toolCallId, c.of("tool_call")[0].toolCallId);
      assert.equal(existsSync(join(g.workspace, `${kind}.txt`)), made);
      await c.close();
    }
  });

  await t.test("works in the cwd", async (t) => {
    const home = g.home(t);
    const c = await Client.open(t, home);
    const {sessionId} = await open(c, home.project); // outside of the workspace: operator.admin, for this one request
    await ask(c, sessionId, play([{tool: ["exec", {command: "touch here.txt"}]}], [{text: "done"}]));
    assert.ok(existsSync(home.path("here.txt")));
    const {sessions} = await request(c, M.agent.session.list, {cwd: home.project});
    assert.deepEqual(sessions.map((s) => s.sessionId), [sessionId]);
    await c.close();
  });

  await t.test("tells truly how a turn ends", async (t) => {
    const c = await Client.open(t, g.home(t));
    const {sessionId} = await open(c);
    assert.equal((await ask(c, sessionId, play([{text: "cut"}, {finish: "length"}]))).stopReason, "max_tokens");
    await assert.rejects(ask(c, sessionId, play([{finish: "content_filter"}])), /the turn failed/);
    assert.equal((await ask(c, sessionId, "/help")).stopReason, "end_turn");
    assert.match(text(c), /Help/);
    const turn = ask(c, sessionId, play([{text: Array(1500).fill("w "), every: 20}]));
    await c.next((u) => u.sessionUpdate === "agent_message_chunk" && u.content.text.includes("w"), "text", patience);
    const before = performance.now();
    await c.notify(M.agent.session.cancel, {sessionId});
    assert.equal((await turn).stopReason, "cancelled");
    assert.ok(performance.now() - before < 250 + slack, "the cancel took long");
    assert.equal((await ask(c, sessionId, play([{text: "next"}]))).stopReason, "end_turn");
    await c.close();
  });

  await t.test("keeps a session: load, resume, list, modes, delete", async (t) => {
    let c = await Client.open(t, g.home(t));
    const {sessionId} = await open(c);
    await ask(c, sessionId, play([{text: "one"}, {tool: ["read", {path: "AGENTS.md"}]}], [{text: "two"}]), {type: "image", mimeType: "image/png", data: PNG});
    await request(c, M.agent.session.setMode, {sessionId, modeId: "high"});
    const set = await request(c, M.agent.session.setConfigOption, {sessionId, configId: "verbose_level", value: "on"});
    assert.equal(set.configOptions.find((o) => o.id === "verbose_level").currentValue, "on");
    assert.equal(set.configOptions.find((o) => o.id === "thought_level").currentValue, "high");
    await c.close();
    c = await Client.open(t, g.home(t)); // another device: it has nothing but the id
    const {modes} = await request(c, M.agent.session.load, {sessionId, cwd: g.workspace, mcpServers: []});
    assert.equal(modes.currentModeId, "high");
    assert.match(text(c, "user_message_chunk"), /^play @@/);
    assert.match(text(c), /one.*two/);
    assert.equal(c.of("tool_call").length, 1);
    await request(c, M.agent.session.resume, {sessionId, cwd: g.workspace, mcpServers: []});
    assert.equal((await ask(c, sessionId, play([{text: "three"}]))).stopReason, "end_turn");
    const seen = new Map();
    for (let cursor; ;) {
      const page = await request(c, M.agent.session.list, {cursor, _meta: {limit: 2}});
      for (const s of page.sessions) seen.set(s.sessionId, (seen.get(s.sessionId) ?? 0) + 1);
      if (!(cursor = page.nextCursor)) break;
    }
    assert.equal(seen.get(sessionId), 1);
    assert.ok([...seen.values()].every((n) => n === 1), JSON.stringify([...seen]));
    await request(c, M.agent.session.delete, {sessionId});
    await assert.rejects(request(c, M.agent.session.load, {sessionId, cwd: g.workspace, mcpServers: []}), (e) => e.code === -32002);
    await c.close();
  });

  await t.test("loses nothing when the connection is cut, and tells nothing twice", async (t) => {
    const way = await g.way(t);
    const c = await Client.open(t, g.home(t, way.port));
    const {sessionId} = await open(c);
    const many = Array.from({length: 40}, (_, i) => `w${i} `);
    const turn = ask(c, sessionId, play([{think: "hm"}, {text: many, every: 25}, {tool: ["read", {path: "AGENTS.md"}]}], [{text: [...many, "END"], every: 25}]));
    await c.next((u) => u.sessionUpdate === "agent_thought_chunk", "a thought", patience);
    for (const wait of [200, 900, 1200]) {
      await new Promise((go) => setTimeout(go, wait)); // where it falls does not matter
      way.cut();
    }
    assert.equal((await turn).stopReason, "end_turn");
    const all = many.join("").trim();
    // White space at the end of a message is told or not, as the cuts fall.
    assert.match(text(c).replaceAll(/\s+/g, " ").trim(), new RegExp(`^${all} ?${all} END$`));
    assert.equal(c.of("tool_call").length, 1);
    assert.equal(c.of("tool_call_update").filter((u) => u.status === "completed").length, 1);
    await c.close();
  });

  await t.test("works with acpx", async (t) => {
    const home = g.home(t);
    const quote = (w) => `'${w}'`;
    const args = [acpx, "--agent", home.command.map(quote).join(" "), "--cwd", home.project, "--approve-all", "--format", "json", "exec", play([{text: "from afar"}])];
    const {stdout} = await limit(promisify(execFile)(process.execPath, args, {cwd: home.project, env: home.env}), "acpx", patience);
    assert.match(stdout, /from afar/);
    assert.match(stdout, /end_turn/);
  });
});
