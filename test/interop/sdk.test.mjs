// The official TypeScript client against `berth acp`: what an editor does in a
// day. Every frame the agent sends is held against the published schema. The
// files http and ws play the same against `berth daemon`.
import assert from "node:assert/strict";
import {mkdirSync, writeFileSync} from "node:fs";
import test from "node:test";
import {Client, M, choose, limit, transport} from "./lib/client.mjs";
import {Home, slack} from "./lib/home.mjs";

const write = (path, content) => `call write_file ${JSON.stringify({path, content})}`;

test("initialize tells what works", async (t) => {
  const c = await Client.open(t, new Home(t, {script: 'text "Hello."'}));
  assert.equal(c.init.protocolVersion, 1);
  assert.equal(c.init.agentInfo.name, "berth");
  assert.equal(c.init.agentInfo.title, "Berth");
  assert.ok(c.init.agentInfo.version);
  const caps = c.init.agentCapabilities;
  assert.equal(caps.loadSession, true);
  for (const ability of ["list", "resume", "close", "delete"]) assert.ok(caps.sessionCapabilities[ability], ability);
  assert.equal(caps.promptCapabilities.embeddedContext, true);
  assert.deepEqual(c.init.authMethods.map((m) => m.id), ["local"]);
  await c.request(M.agent.authenticate, {methodId: "local"});
});

test("a prompt streams text and thoughts, then answers", async (t) => {
  const script = 'thought "A greeting."\ntext "Hello, "\ntext "wörld 🌍."\nusage input=12 output=7';
  const c = await Client.open(t, new Home(t, {script}));
  const id = await c.session();
  assert.match(id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const {stopReason} = await c.prompt(id, "Say hello.");
  assert.equal(stopReason, "end_turn");
  assert.equal(c.text(), "Hello, wörld 🌍.");
  assert.equal(c.text(0, "agent_thought_chunk"), "A greeting.");
});

test("every kind of content of a prompt reaches the model", async (t) => {
  const script = ['expect "inline words"', 'expect "the attached notes"', 'expect "linked.txt"', 'text "All read."'].join("\n");
  const home = new Home(t, {script, files: {"linked.txt": "linked"}});
  const c = await Client.open(t, home);
  const id = await c.session();
  const {stopReason} = await c.prompt(
    id,
    "inline words",
    {type: "resource", resource: {uri: "file:///notes.md", mimeType: "text/markdown", text: "the attached notes"}},
    {type: "resource_link", uri: `file://${home.path("linked.txt")}`, name: "linked.txt"},
  );
  assert.equal(stopReason, "end_turn");
  assert.equal(c.text(), "All read.");
});

test("a tool call reads a real file without asking", async (t) => {
  const home = new Home(t, {
    script: 'text "Let me look."\ncall read_file {"path":"notes.txt"}\n--- next\nexpect "the secret is 42"\ntext "It says 42."',
    files: {"notes.txt": "the secret is 42\n"},
  });
  const c = await Client.open(t, home);
  const id = await c.session();
  assert.equal((await c.prompt(id, "What does it say?")).stopReason, "end_turn");
  assert.equal(c.text(), "Let me look.It says 42.");
  assert.equal(c.asked.length, 0);
  const [call] = c.of("tool_call");
  assert.equal(call.kind, "read");
  assert.equal(c.of("tool_call_update").at(-1).status, "completed");
});

test("an edit asks with the diff, and runs when allowed", async (t) => {
  const home = new Home(t, {
    script: 'call edit_file {"path":"a.txt","edits":[{"old_text":"two","new_text":"2"}]}\n--- next\ntext "Done."',
    files: {"a.txt": "one\ntwo\nthree\n"},
  });
  const c = await Client.open(t, home);
  const id = await c.session();
  assert.equal((await c.prompt(id, "Make it a digit.")).stopReason, "end_turn");
  assert.equal(home.read("a.txt"), "one\n2\nthree\n");
  assert.equal(c.asked.length, 1);
  const [call] = c.of("tool_call");
  assert.equal(c.asked[0].toolCall.toolCallId, call.toolCallId);
  assert.equal(call.kind, "edit");
  const diffs = [call, ...c.of("tool_call_update"), c.asked[0].toolCall].flatMap((u) => u.content ?? []).filter((x) => x.type === "diff");
  assert.ok(diffs.length > 0, "no diff was shown");
  assert.equal(diffs[0].path, home.path("a.txt"));
  assert.equal(diffs[0].oldText, "one\ntwo\nthree\n");
  assert.equal(diffs[0].newText, "one\n2\nthree\n");
  assert.equal(c.of("tool_call_update").at(-1).status, "completed");
});

test("a rejected call leaves the file alone and the turn goes on", async (t) => {
  const home = new Home(t, {script: `${write("a.txt", "new")}\n--- next\ntext "As you wish."`, files: {"a.txt": "old"}});
  const c = await Client.open(t, home, {permission: choose("reject_once")});
  const id = await c.session();
  assert.equal((await c.prompt(id, "Overwrite it.")).stopReason, "end_turn");
  assert.equal(home.read("a.txt"), "old");
  assert.equal(c.text(), "As you wish.");
  assert.equal(c.of("tool_call_update").at(-1).status, "failed");
});

test("always is remembered, also over a restart", async (t) => {
  const step = (name) => `${write(name, "x")}\n--- next\ntext "Wrote."\n`;
  const home = new Home(t, {script: `${step("a.txt")}--- next\n${step("b.txt")}`});
  let c = await Client.open(t, home, {permission: choose("allow_always")});
  const id = await c.session();
  await c.prompt(id, "one");
  assert.equal(c.asked.length, 1);
  await c.prompt(id, "two");
  assert.equal(c.asked.length, 1, "it asked again in the same process");
  await c.restart();
  c = await Client.open(t, home);
  await c.request(M.agent.session.resume, {sessionId: id, cwd: home.project, mcpServers: []});
  await c.prompt(id, "three");
  assert.equal(c.asked.length, 0, "it asked again after a restart");
});

test("files go through the editor's buffers when it offers them", async (t) => {
  const home = new Home(t, {
    script: `call read_file {"path":"a.txt"}\n--- next\nexpect "unsaved words"\n${write("a.txt", "new words\n")}\n--- next\ntext "Done."`,
    files: {"a.txt": "words on disk\n"},
  });
  const buffers = new Map([[home.path("a.txt"), "unsaved words\n"]]);
  const c = await Client.open(t, home, {buffers});
  const id = await c.session();
  assert.equal((await c.prompt(id, "Improve it.")).stopReason, "end_turn");
  assert.equal(c.text(), "Done.");
  assert.equal(buffers.get(home.path("a.txt")), "new words\n");
  assert.ok(c.files.some((f) => f.method === "write" && f.sessionId === id));
});

test("a cancel ends a stream, and the next prompt works", async (t) => {
  const c = await Client.open(t, new Home(t, {script: 'chunks 100000 "tick " every 1ms\n--- next\ntext "Here again."'}));
  const id = await c.session();
  const first = c.next((u) => u.sessionUpdate === "agent_message_chunk", "the first chunk");
  const turn = c.prompt(id, "Go on for ever.");
  await first;
  const start = performance.now();
  await c.notify(M.agent.session.cancel, {sessionId: id});
  assert.equal((await turn).stopReason, "cancelled");
  assert.ok(performance.now() - start < 1_000 + slack, "the cancel took more than a second");
  const at = c.updates.length;
  assert.equal((await c.prompt(id, "Are you there?")).stopReason, "end_turn");
  assert.equal(c.text(at), "Here again.");
});

test("a cancel before the first token, in the same write as the prompt", async (t) => {
  const c = await Client.open(t, new Home(t, {script: "hang\n--- next\nhang\n--- next\nhang"}));
  const id = await c.session();
  for (let i = 0; i < 3; i++) {
    const turn = c.prompt(id, "Wait.");
    await c.notify(M.agent.session.cancel, {sessionId: id});
    assert.equal((await turn).stopReason, "cancelled");
  }
});

test("a cancel while a permission is asked withdraws the question", async (t) => {
  const home = new Home(t, {script: `${write("a.txt", "x")}\n--- next\ntext "Not here."`});
  let ask;
  const asked = new Promise((done) => (ask = done));
  const permission = (_, signal) =>
    new Promise((answer) => {
      ask();
      signal?.addEventListener("abort", () => answer({outcome: {outcome: "cancelled"}}));
    });
  const c = await Client.open(t, home, {permission});
  const id = await c.session();
  const turn = c.prompt(id, "Write it.");
  await limit(asked, "the question");
  await c.notify(M.agent.session.cancel, {sessionId: id});
  assert.equal((await turn).stopReason, "cancelled");
  assert.equal(c.of("tool_call_update").at(-1).status, "failed");
  assert.throws(() => home.read("a.txt"));
});

test("a question answered cancelled ends the turn as cancelled", async (t) => {
  const home = new Home(t, {script: `${write("a.txt", "x")}\n--- next\ntext "Not here."`});
  const c = await Client.open(t, home, {permission: () => ({outcome: {outcome: "cancelled"}})});
  const id = await c.session();
  assert.equal((await c.prompt(id, "Write it.")).stopReason, "cancelled");
});

test("an aborted request is answered as cancelled", async (t) => {
  const c = await Client.open(t, new Home(t, {script: 'chunks 100000 "tick " every 1ms\n--- next\ntext "Fine."'}));
  const id = await c.session();
  const abort = new AbortController();
  const first = c.next((u) => u.sessionUpdate === "agent_message_chunk", "the first chunk");
  const turn = c.request(M.agent.session.prompt, {sessionId: id, prompt: [{type: "text", text: "go"}]}, {cancellationSignal: abort.signal});
  const ended = turn.then(
    (r) => r.stopReason,
    (e) => e.code,
  );
  await first;
  abort.abort();
  // The protocol allows both: a cancelled result or the cancelled error.
  assert.ok(["cancelled", -32800].includes(await ended), String(await ended));
  assert.equal((await c.prompt(id, "again")).stopReason, "end_turn");
});

test("load replays what was seen, resume replays nothing, over a crash", async (t) => {
  const home = new Home(t, {
    script: `thought "Hm."\ntext "First."\ncall read_file {"path":"a.txt"}\n--- next\ntext "Second."\n--- next\nexpect "Second."\ntext "Third."`,
    files: {"a.txt": "content"},
  });
  let c = await Client.open(t, home);
  const id = await c.session();
  await c.prompt(id, "Remember this.");
  const seen = {text: c.text(), thought: c.text(0, "agent_thought_chunk"), calls: c.of("tool_call").map((u) => u.toolCallId)};
  await c.kill();

  c = await Client.open(t, home);
  await c.request(M.agent.session.load, {sessionId: id, cwd: home.project, mcpServers: []});
  assert.equal(c.text(0, "user_message_chunk"), "Remember this.");
  assert.deepEqual({text: c.text(), thought: c.text(0, "agent_thought_chunk"), calls: c.of("tool_call").map((u) => u.toolCallId)}, seen);
  await c.kill();

  c = await Client.open(t, home);
  await c.request(M.agent.session.resume, {sessionId: id, cwd: home.project, mcpServers: []});
  assert.equal(c.text() + c.text(0, "user_message_chunk"), "");
});

test("a session goes on after it was loaded", async (t) => {
  const home = new Home(t, {script: '--- next when "first"\ntext "One."\n--- next when "second"\nexpect "One."\ntext "Two."'});
  let c = await Client.open(t, home);
  const id = await c.session();
  await c.prompt(id, "the first");
  await c.close();
  c = await Client.open(t, home);
  await c.request(M.agent.session.load, {sessionId: id, cwd: home.project, mcpServers: []});
  const at = c.updates.length;
  assert.equal((await c.prompt(id, "the second")).stopReason, "end_turn");
  assert.equal(c.text(at), "Two.");
});

test("list, close and delete", async (t) => {
  const home = new Home(t, {script: '--- next always\ntext "Noted."'});
  const c = await Client.open(t, home);
  const ids = [];
  for (const words of ["alpha", "beta", "gamma"]) {
    const id = await c.session();
    await c.prompt(id, words);
    ids.push(id);
  }
  const listed = async (params = {}) => (await c.request(M.agent.session.list, params)).sessions.map((s) => s.sessionId);
  assert.deepEqual(new Set(await listed()), new Set(ids));
  assert.deepEqual(new Set(await listed({cwd: home.project})), new Set(ids));
  mkdirSync(home.path("elsewhere"));
  assert.deepEqual(await listed({cwd: home.path("elsewhere")}), []);

  await c.request(M.agent.session.close, {sessionId: ids[0]});
  const closed = await c.refused(M.agent.session.prompt, {sessionId: ids[0], prompt: [{type: "text", text: "hello?"}]});
  assert.equal(closed.code, -32002);
  assert.ok((await listed()).includes(ids[0]), "close forgot the session");

  await c.request(M.agent.session.delete, {sessionId: ids[1]});
  assert.ok(!(await listed()).includes(ids[1]));
  const gone = await c.refused(M.agent.session.load, {sessionId: ids[1], cwd: home.project, mcpServers: []});
  assert.equal(gone.code, -32002);
  assert.equal(gone.data.reason, "SESSION_NOT_FOUND");
  assert.equal(gone.data.sessionId, ids[1]);
});

test("two sessions work at the same time", async (t) => {
  const home = new Home(t, {script: '--- next when "slow"\ntext "s"\nhang\n--- next when "fast"\ntext "fast"'});
  const c = await Client.open(t, home);
  const [slow, fast] = [await c.session(), await c.session()];
  const first = c.next((u) => u.sessionUpdate === "agent_message_chunk", "the first chunk");
  const turn = c.prompt(slow, "slow");
  await first;
  assert.equal((await c.prompt(fast, "fast")).stopReason, "end_turn");
  let running = true;
  turn.then(() => (running = false));
  await new Promise((go) => setImmediate(go));
  assert.ok(running, "the fast turn was not beside the slow one");
  await c.notify(M.agent.session.cancel, {sessionId: slow});
  assert.equal((await turn).stopReason, "cancelled");
});

test("errors say what was wrong", async (t) => {
  const home = new Home(t, {script: 'error provider_rejected "the model does not exist"', files: {"file.txt": "x"}});
  const c = await Client.open(t, home);
  const cases = [
    ["an unknown method", "no/such_method", {}, -32601],
    ["an unknown session", M.agent.session.prompt, {sessionId: "nobody", prompt: [{type: "text", text: "x"}]}, -32002, "SESSION_NOT_FOUND"],
    ["a prompt of the wrong type", M.agent.session.prompt, {sessionId: 5, prompt: 7}, -32602, "INVALID_PARAMS"],
    ["a relative cwd", M.agent.session.new, {cwd: "some/where", mcpServers: []}, -32602, "INVALID_PARAMS"],
    ["a cwd that is missing", M.agent.session.new, {cwd: home.path("missing"), mcpServers: []}, -32602, "INVALID_PARAMS"],
    ["a cwd that is a file", M.agent.session.new, {cwd: home.path("file.txt"), mcpServers: []}, -32602, "INVALID_PARAMS"],
    ["no cwd", M.agent.session.new, {mcpServers: []}, -32602, "INVALID_PARAMS"],
    ["an agent that is not configured", M.agent.session.new, {cwd: home.project, mcpServers: [], _meta: {berth: {agent: "nobody"}}}, -32602, "INVALID_PARAMS"],
  ];
  for (const [name, method, params, code, reason] of cases) {
    // Over HTTP a message that names no session has no header for it and is
    // refused as a request already.
    if (transport === "http" && name === "a prompt of the wrong type") continue;
    const e = await c.refused(method, params);
    assert.equal(e.code, code, `${name}: ${e.message}`);
    if (reason) assert.equal(e.data.reason, reason, name);
    assert.ok(e.message.length > 5, name);
  }
  const id = await c.session();
  const failed = await c.refused(M.agent.session.prompt, {sessionId: id, prompt: [{type: "text", text: "x"}]});
  assert.match(failed.message, /the model does not exist/);
  assert.match(failed.data.reason, /^PROVIDER_/);
});

test("the offline model works without any configuration", async (t) => {
  const home = new Home(t, {files: {"hello.txt": "the quick brown fox\n"}});
  const c = await Client.open(t, home);
  const id = await c.session();
  assert.equal((await c.prompt(id, "read hello.txt")).stopReason, "end_turn");
  assert.equal(c.of("tool_call")[0].kind, "read");
  assert.match(c.text(), /quick brown fox/);
});

test("a wrong setting stops the start with one clear message", {skip: transport !== "stdio"}, async (t) => {
  const home = new Home(t);
  writeFileSync(`${home.config}/config.toml`, "version = 1\n\n[acp]\nmax_sesions = 5\n");
  const c = new Client(t, home);
  c.killed = true; // it never answers, and exits by itself
  const {code} = await limit(c.exit, "the exit");
  assert.equal(code, 1);
  assert.match(c.stderr, /config\.toml:4/);
  assert.match(c.stderr, /max_sesions/);
  assert.match(c.stderr, /max_sessions/);
});
