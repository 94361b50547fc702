// The console's logic: modules that know no nodes.
import assert from "node:assert/strict";
import {describe, test} from "node:test";

const at = (name) => import(new URL(`../../adapters/console/assets/${name}.js`, import.meta.url));
const {Reader, parse, inline} = await at("markdown");
const {hunks, split, stat} = await at("diff");
const text = await at("text");
const state = await at("state");
const {Connection, Lost, offers, refusal, usable, wait} = await at("wire");
const {Opened} = await at("opened");
const files = await at("files");

const t = (s) => ({type: "text", text: s});
const shape = (blocks) => blocks.map((b) => b.type + (b.level ?? ""));
/** flat is what a tree says, without what it looks like. */
const flat = (list) => list.map((n) => n.text ?? (n.inline ? flat(n.inline) : n.type === "break" ? "\n" : "")).join("");

describe("markdown", () => {
  const cases = [
    ["a paragraph of two lines", "a\nb", ["paragraph"]],
    ["two paragraphs", "a\n\nb", ["paragraph", "paragraph"]],
    ["headings", "# a\n### b ##\n#c", ["heading1", "heading3", "paragraph"]],
    ["a fence", "```go\na\n\n# b\n```\nc", ["code", "paragraph"]],
    ["a fence without an end", "x\n```\na\n", ["paragraph", "code"]],
    ["a fence with a longer end", "~~~\n```\n~~~~\na", ["code", "paragraph"]],
    ["a list behind words", "a:\n- b\n- c", ["paragraph", "list"]],
    ["a year is no list", "it was in\n1984. A good year", ["paragraph"]],
    ["bullets, then numbers", "- a\n\n1. b", ["list", "list"]],
    ["a rule between stars", "a\n\n* * *\n\nb", ["paragraph", "rule", "paragraph"]],
    ["a quote", "> a\n> - b\n\nc", ["quote", "paragraph"]],
    ["a table", "|a|b|\n|-|:-:|\n|1|2|3|\n\nx", ["table", "paragraph"]],
    ["no table without delimiters", "a | b\nc | d", ["paragraph"]],
    ["HTML is words", "<script>alert(1)</script>\n\n<b>x</b>", ["paragraph", "paragraph"]],
  ];
  for (const [name, source, want] of cases) test(name, () => assert.deepEqual(shape(parse(source)), want));

  test("items hold what is indented", () => {
    const [list] = parse("1. a\n   more\n\n   second\n2. b\n   - c\n   ```\n   d\n   ```\n3. [x] e");
    assert.equal(list.items.length, 3);
    assert.deepEqual(shape(list.items[0].blocks), ["paragraph", "paragraph"]);
    assert.deepEqual(shape(list.items[1].blocks), ["paragraph", "list", "code"]);
    assert.equal(list.items[2].checked, true);
  });

  const spans = [
    ["strong and emphasis", "a **b *c*** d", "a b c d", ["text", "strong", "text"]],
    ["snake_case_name stays", "snake_case_name", "snake_case_name", ["text"]],
    ["2 * 3 * 4 stays", "2 * 3 * 4", "2 * 3 * 4", ["text"]],
    ["code keeps its stars", "`a **b**`", "a **b**", ["code"]],
    ["code with ticks", "`` a`b ``", "a`b", ["code"]],
    ["escapes", "\\*a\\* \\`", "*a* `", ["text"]],
    ["a link", "[a](http://x.y/(z) \"t\")", "a", ["link"]],
    ["a bare address and its full stop", "see https://x.y/a_b_c.", "see https://x.y/a_b_c.", ["text", "link", "text"]],
    ["an address in brackets", "(https://x.y)", "(https://x.y)", ["text", "link", "text"]],
    ["a link without an end", "[a](http://x", "[a](http://x", ["text", "link"]],
    ["struck", "~~a~~ ~b~", "a ~b~", ["strike", "text"]],
  ];
  for (const [name, source, says, kinds] of spans) {
    test(name, () => {
      const tree = inline(source);
      assert.equal(flat(tree), says);
      assert.deepEqual(tree.map((n) => n.type), kinds);
    });
  }

  test("a text that grows reads like the whole, wherever it is cut", () => {
    const source = "# a\n\nText **b** `c`\nmore\n\n- x\n\n  y\n- z\n  1. p\n\n|a|b|\n|-|-|\n|1|2|\n\n```js\nlet a;\n\n```\n> q\nr\n\n***\n1) w\n";
    const whole = JSON.stringify(parse(source).map(({at, ...b}) => b));
    for (const step of [1, 2, 3, 7, 50]) {
      const r = new Reader();
      for (let i = step; i < source.length + step; i += step) r.push(source.slice(0, i));
      assert.equal(JSON.stringify(r.blocks.map(({at, ...b}) => b)), whole, `steps of ${step}`);
    }
  });

  test("blocks that are finished stay the same objects", () => {
    const r = new Reader();
    r.push("a\n\nb");
    const [first] = r.blocks;
    assert.equal(r.push("a\n\nb c"), 1);
    assert.equal(r.blocks[0], first);
    assert.equal(r.push("other"), 0);
  });

  test("nothing makes it slow", () => {
    const began = process.cpuUsage().user;
    for (const s of ["*", "_", "`", "[", "![", "**a ", "> ", "- ", "|", "<http", "`a*", "[a](", "~~", "\\", "#", "1. "]) {
      parse(s.repeat(20_000 / s.length));
      parse(`${s}\n`.repeat(1_000));
    }
    assert.ok((process.cpuUsage().user - began) / 1e6 < 20, "20 s of reading");
  });
});

describe("diff", () => {
  const apply = (list, old) => {
    // What the hunks say, put into the old text, is the new one.
    const out = [];
    let o = 0;
    for (const h of list) {
      const first = h.lines.find((l) => l.old)?.old ?? o + 1;
      while (o + 1 < first) out.push(old[o++]);
      for (const l of h.lines) {
        if (l.op !== "+") assert.equal(l.text, old[o++]);
        if (l.op !== "-") out.push(l.text);
      }
    }
    return out.concat(old.slice(o));
  };
  const cases = [
    ["nothing", "a\nb\n", "a\nb\n", {added: 0, removed: 0}],
    ["a new file", null, "a\nb\n", {added: 2, removed: 0}],
    ["all gone", "a\nb\n", "", {added: 0, removed: 2}],
    ["one line", "a\nb\nc\n", "a\nx\nc\n", {added: 1, removed: 1}],
    ["Windows lines", "a\r\nb\r\n", "a\nb\nc\n", {added: 1, removed: 0}],
    ["far apart", [..."abcdefghijklmnopqrstuvwxyz"].join("\n"), ["A", ..."bcdefghijklmnopqrstuvwxy", "Z"].join("\n"), {added: 2, removed: 2}],
  ];
  for (const [name, a, b, want] of cases) {
    test(name, () => {
      const list = hunks(a, b);
      assert.deepEqual(stat(list), want);
      assert.deepEqual(apply(list, split(a)), split(b));
    });
  }
  test("hunks that are far apart are two", () => assert.equal(hunks(cases[5][1], cases[5][2]).length, 2));
  test("any two texts", () => {
    let seed = 7;
    const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
    for (let i = 0; i < 300; i++) {
      const a = Array.from({length: random(30)}, () => "abc"[random(3)]);
      const b = Array.from({length: random(30)}, () => "abc"[random(3)]);
      assert.deepEqual(apply(hunks(a.join("\n"), b.join("\n"), 1 + random(3)), split(a.join("\n"))), split(b.join("\n")));
    }
  });
  test("large texts without a common line", () => {
    const list = hunks("a\n".repeat(20_000), "b\n".repeat(20_000));
    assert.deepEqual(stat(list), {added: 20_000, removed: 20_000});
  });
});

describe("text", () => {
  const cases = [
    ["letters that turn others round", text.prose("a\u202eb\u2066c"), "a⟨U+202E⟩b⟨U+2066⟩c"],
    ["joiners in prose", text.prose("👩\u200d🚀 \u0639\u200c"), "👩\u200d🚀 \u0639\u200c"],
    ["what cannot be seen in a command", text.exact("rm\u200b -rf\u00ad \u{e0041}"), "rm⟨U+200B⟩ -rf⟨U+00AD⟩ ⟨U+E0041⟩"],
    ["controls", text.exact("a\u0007\tb\nc"), "a⟨U+0007⟩\tb\nc"],
    ["colours of a terminal", text.output("\u001b[31mred\u001b[0m\r\nx\u001b]0;t\u0007y"), "red\nxy"],
    ["one line", text.line("  a\n\tb  ", 10), "a b"],
    ["a long line", text.line("abcdef", 4), "abc…"],
    ["an address", text.href("https://x.y/a b"), "https://x.y/a%20b"],
    ["a script", text.href("javascript:alert(1)"), ""],
    ["a script in disguise", text.href(" JaVaScRiPt:alert(1)"), ""],
    ["data", text.href("data:text/html,x"), ""],
    ["an address that turns round", text.href("https://x.y/\u202e"), ""],
    ["an address with a name before the host", text.href("https://bank.example@evil.example/"), ""],
    ["a path below the directory", text.shortPath("/p/a/b", "/p"), "a/b"],
    ["a path beside the directory", text.shortPath("/pq/a", "/p"), "/pq/a"],
    ["small money", text.money(0.0042), "$0.0042"],
    ["money", text.money(12.5, "EUR"), "12.50 EUR"],
    ["counts", [999, 1234, 200_000, 1_500_000].map(text.count).join(" "), "999 1.2k 200k 1.5M"],
    ["a while ago", text.ago("2024-01-01T00:00:00Z", Date.parse("2024-01-01T02:00:00Z")), "2 h"],
  ];
  for (const [name, got, want] of cases) test(name, () => assert.equal(got, want));
  test("asked twice, an address is judged the same", () => {
    assert.equal(text.href("https://x/\u200b"), "");
    assert.equal(text.href("https://x/\u200b"), "");
    assert.equal(text.href("https://x/"), "https://x/");
  });
});

describe("state", () => {
  const chunk = (kind, s, messageId) => ({sessionUpdate: `${kind}_message_chunk`, content: t(s), ...(messageId ? {messageId} : {})});
  const of = (...updates) => {
    const s = new state.Session("s");
    for (const u of updates) s.apply(u);
    return s;
  };
  const story = (s) => s.items.map((i) => `${i.type}:${i.blocks ? state.words(i.blocks) : i.title ?? ""}`);

  test("chunks of a message are one", () => assert.deepEqual(story(of(chunk("agent", "a", "1"), chunk("agent", "b", "1"), chunk("agent", "c", "2"))), ["agent:ab", "agent:c"]));
  test("chunks without ids go together until something comes between", () =>
    assert.deepEqual(story(of(chunk("agent", "a"), chunk("agent", "b"), {sessionUpdate: "agent_thought_chunk", content: t("x")}, chunk("agent", "c"))), ["agent:ab", "thought:x", "agent:c"]));
  test("a message goes on behind a call", () =>
    assert.deepEqual(story(of(chunk("agent", "a", "1"), {sessionUpdate: "tool_call", toolCallId: "c", title: "T"}, chunk("agent", "b", "1"))), ["agent:ab", "call:T"]));
  test("a call keeps what an update leaves out", () => {
    const s = of(
      {sessionUpdate: "tool_call", toolCallId: "c", title: "T", kind: "edit", status: "pending", rawInput: {a: 1}},
      {sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed", content: [{type: "diff", path: "/p", newText: "x"}]},
    );
    assert.equal(s.items.length, 1);
    const {title, kind, status, rawInput, content} = s.call("c");
    assert.deepEqual({title, kind, status, rawInput, n: content.length}, {title: "T", kind: "edit", status: "completed", rawInput: {a: 1}, n: 1});
  });
  test("an update of a call that nobody announced", () => assert.equal(of({sessionUpdate: "tool_call_update", toolCallId: "c", status: "failed"}).call("c").status, "failed"));
  test("calls that run are over when the turn is", () => {
    const s = of({sessionUpdate: "tool_call", toolCallId: "c", title: "T", status: "in_progress"});
    s.ended("cancelled");
    assert.equal(s.call("c").status, "cancelled");
    assert.equal(state.stopped(s.last.reason), "Cancelled");
  });
  test("how turns of a history ended", () => {
    const end = (turnId, how) => ({sessionUpdate: "session_info_update", _meta: {berth: {turnId, ...how}}});
    const s = of(
      chunk("user", "a", "t1-u"), end("t1", {stopReason: "cancelled"}), chunk("user", "b", "t2-u"), chunk("agent", "[This turn failed: 529]", "t2-end"), end("t2", {error: "529"}),
      chunk("user", "c", "t3-u"), end("t3", {stopReason: "refusal"}), end("t3", {stopReason: "refusal"}), chunk("user", "d", "t4-u"), end("t4", {stopReason: "max_tokens"}),
      {sessionUpdate: "session_info_update", title: "T"}, {sessionUpdate: "session_info_update", _meta: {berth: "x"}}, {sessionUpdate: "session_info_update", _meta: null},
    );
    const told = () => s.items.map((i) => (i.type === "end" ? state.stopped(i.reason) : state.words(i.blocks)));
    const all = ["a", "Cancelled", "b", "[This turn failed: 529]", "The turn failed", "c", "The model refused to go on", "d", "Stopped: the answer reached its length limit"];
    assert.deepEqual([told(), s.title], [all, "T"]);
    s.ended("max_tokens", {turn: "t4", usage: {inputTokens: 1}});
    assert.deepEqual([told(), s.last.usage], [all, {inputTokens: 1}]);
  });
  test("plan, usage, title, commands", () => {
    const s = of(
      {sessionUpdate: "plan", entries: [{content: "a"}]}, {sessionUpdate: "plan", entries: [{content: "b"}]},
      {sessionUpdate: "usage_update", used: 1, size: 10, cost: {amount: 2, currency: "USD"}}, {sessionUpdate: "usage_update", used: 3, size: 10},
      {sessionUpdate: "session_info_update", title: "T"}, {sessionUpdate: "available_commands_update", availableCommands: [{name: "compact"}]},
    );
    assert.deepEqual([s.plan, s.usage, s.title, s.commands.length, s.items.length], [[{content: "b"}], {used: 3, size: 10, cost: {amount: 2, currency: "USD"}}, "T", 1, 0]);
  });
  test("a compaction and its summary", () => {
    const s = of(
      {sessionUpdate: "compaction_update", compactionId: "k", status: "in_progress"}, {sessionUpdate: "compaction_summary_chunk", compactionId: "k", content: t("a")},
      {sessionUpdate: "compaction_summary_chunk", compactionId: "k", content: t("b")}, {sessionUpdate: "compaction_update", compactionId: "k", status: "completed", summary: [t("whole")]},
    );
    assert.deepEqual([s.items.length, s.items[0].status, s.items[0].summary], [1, "completed", "whole"]);
  });
  test("numbers that are none count as nothing", () => {
    const s = of({sessionUpdate: "usage_update", used: "<b>", size: null, cost: {amount: "x", currency: 7}});
    assert.deepEqual(s.usage, {used: 0, size: 0, cost: {amount: 0, currency: "7"}});
    assert.equal(text.money(NaN), "");
  });
  test("the mode of the agent", () => assert.equal(of({sessionUpdate: "current_mode_update", currentModeId: "architect"}).mode, "architect"));
  test("what is unknown or malformed changes nothing", () => assert.equal(of({sessionUpdate: "new_kind"}, null, 7, {}, {sessionUpdate: "agent_message_chunk"}, {sessionUpdate: "plan", entries: 3}).items.length, 0));
  test("ten thousand updates", () => {
    const s = new state.Session("s");
    for (let i = 0; i < 10_000; i++) s.apply(chunk("agent", "word ", String(i >> 6)));
    assert.equal(s.items.length, 157);
  });

  const rows = [
    {sessionId: "1", title: "Fix the tide", cwd: "/p/harbour", updatedAt: "2024-01-02"}, {sessionId: "2", title: "Other", cwd: "/q", updatedAt: "2024-01-03", _meta: {berth: {agent: "main"}}},
  ];
  for (const [query, want] of [["", "12"], ["TIDE", "1"], ["harbour fix", "1"], ["main", "2"], ["2", "2"], ["none", ""]]) {
    test(`search for "${query}"`, () => assert.equal(state.found(rows, query).map((r) => r.sessionId).join(""), want));
  }
  test("pages are merged, the newest first, each row once", () =>
    assert.deepEqual(state.merged(rows, [{sessionId: "1", title: "new", updatedAt: "2024-01-04"}]).map((r) => r.title), ["new", "Other"]));
  test("keys of options", () =>
    assert.deepEqual(state.keys([{kind: "allow_once"}, {kind: "allow_always"}, {kind: "allow_always"}, {kind: "reject_once"}, {kind: "x"}]), [["1", "y"], ["2", "a"], ["3"], ["4", "n"], ["5"]]));
  const commands = [{name: "compact"}, {name: "cost"}];
  for (const [typed, want] of [["/", 2], ["/co", 2], ["/COM", 1], ["/compact now", 0], ["a /", 0]]) {
    test(`commands for ${typed}`, () => assert.equal(state.commandsFor(typed, commands).length, want));
  }
});

const gone = () => {};

/** A gateway that answers what it is told to, and sockets to it. */
class Fake {
  sockets = [];
  time = 0;
  states = [];
  timers = [];

  connection({probe = async () => "", ...on} = {}) {
    const clock = {setTimeout: (fn) => this.timers.push(fn), clearTimeout: (n) => n && (this.timers[n - 1] = gone)};
    return new Connection({
      token: "tok", probe, timers: clock, now: () => this.time, on: {...on, state: (s, d) => this.states.push(s) && on.state?.(s, d)},
      open: (protocols) => {
        const s = {readyState: 0, protocols, sent: [], send: (m) => s.sent.push(JSON.parse(m)), close: (code) => (s.closed = code)};
        this.sockets.push(s);
        return s;
      },
    });
  }

  /** live is how many timers wait, fired or not. */
  live() {
    return this.timers.filter((fn) => fn !== gone).length;
  }

  get socket() {
    return this.sockets[this.sockets.length - 1];
  }

  open() {
    this.socket.readyState = 1;
    this.socket.onopen();
  }

  say(message) {
    this.socket.onmessage({data: JSON.stringify({jsonrpc: "2.0", ...message})});
  }

  async ready(init = {}) {
    this.open();
    this.say({id: this.socket.sent[0].id, result: init});
    await settle();
  }
}

const settle = () => new Promise((done) => setImmediate(done));

describe("connection", () => {
  test("offers the protocol and the token, and initializes first", async () => {
    const f = new Fake();
    f.connection().start();
    await f.ready();
    assert.deepEqual(f.socket.protocols, ["acp.v1", "bearer.tok"]);
    assert.equal(f.socket.sent[0].method, "initialize");
    assert.deepEqual(f.states, ["connecting", "ready"]);
    assert.deepEqual(offers(""), ["acp.v1"]);
  });

  test("answers find their requests, errors keep their reason", async () => {
    const f = new Fake();
    const c = f.connection();
    c.start();
    await f.ready();
    const [a, b] = [c.call("a"), c.call("b")];
    const [, {id: first}, {id: second}] = f.socket.sent;
    f.say({id: second, error: {code: -31003, message: "active", data: {reason: "SESSION_ACTIVE"}}});
    f.say({id: first, result: 7});
    assert.equal(await a, 7);
    await assert.rejects(b, (e) => e.reason === "SESSION_ACTIVE" && e.code === -31003);
  });

  test("a lost socket is tried again, requests fail, and questions are withdrawn", async () => {
    const f = new Fake();
    const withdrawn = [];
    const asked = [];
    const c = f.connection({ask: (p, reply, token) => asked.push(reply), withdraw: (token) => withdrawn.push(token)});
    c.start();
    await f.ready();
    f.say({id: "q1", method: "session/request_permission", params: {}});
    const call = c.call("x");
    f.socket.onclose({code: 1006});
    await assert.rejects(call, Lost);
    assert.deepEqual(withdrawn, ["q1"]);
    assert.equal(asked[0]({outcome: "cancelled"}), false, "an answer on another connection");
    assert.equal(c.state, "waiting");
    f.timers.at(-1)();
    await f.ready();
    assert.equal(f.sockets.length, 2);
    assert.equal(c.state, "ready");
    assert.ok(f.socket.sent.every((m) => m.id !== "q1"));
  });

  test("a question is answered once", async () => {
    const f = new Fake();
    let reply;
    f.connection({ask: (p, r) => (reply = r)}).start();
    await f.ready();
    f.say({id: "q", method: "session/request_permission", params: {}});
    assert.equal(reply({outcome: "selected", optionId: "a"}), true);
    assert.equal(reply({outcome: "selected", optionId: "b"}), false);
    assert.deepEqual(f.socket.sent.slice(1), [{jsonrpc: "2.0", id: "q", result: {outcome: {outcome: "selected", optionId: "a"}}}]);
  });

  test("a question that is withdrawn is answered so", async () => {
    const f = new Fake();
    const gone = [];
    f.connection({ask: () => {}, withdraw: (x) => gone.push(x)}).start();
    await f.ready();
    f.say({id: "q", method: "session/request_permission", params: {}});
    f.say({method: "$/cancel_request", params: {requestId: "q"}});
    f.say({method: "$/cancel_request", params: {requestId: "other"}});
    assert.deepEqual([gone, f.socket.sent.at(-1).error.code], [["q"], -32800]);
  });

  test("requests it does not know are refused", async () => {
    const f = new Fake();
    f.connection().start();
    await f.ready();
    f.say({id: "r", method: "fs/read_text_file", params: {}});
    assert.equal(f.socket.sent.at(-1).error.code, -32601);
  });

  test("a refused token ends the attempts", async () => {
    const f = new Fake();
    const c = f.connection({probe: async () => refusal(401)});
    c.start();
    f.socket.onclose({code: 1006});
    await settle();
    assert.equal(c.state, "refused");
    f.timers.forEach((fn) => fn());
    assert.equal(f.sockets.length, 1);
  });

  test("a token that is revoked ends it", async () => {
    const f = new Fake();
    const c = f.connection();
    c.start();
    await f.ready();
    f.socket.onclose({code: 1008, reason: "the token was revoked"});
    assert.deepEqual([c.state, f.live()], ["refused", 0]);
  });

  test("a socket that is dead and does not say so is given up", async () => {
    const f = new Fake();
    const c = f.connection();
    c.start();
    await f.ready();
    c.check();
    assert.equal(f.socket.sent.length, 1, "the gateway has just been heard");
    f.time = 60_000;
    c.check();
    c.check();
    assert.deepEqual(f.socket.sent.slice(1).map((m) => m.method), ["session/list"]);
    f.say({id: f.socket.sent[1].id, result: {}});
    assert.deepEqual([c.state, f.live()], ["ready", 0]);
    f.time = 120_000;
    c.check();
    const first = f.socket;
    f.timers.at(-1)();
    assert.deepEqual([c.state, first.closed], ["waiting", 4000]);
    f.timers.at(-1)();
    await f.ready();
    assert.deepEqual([c.state, f.sockets.length], ["ready", 2]);
  });

  test("a gateway that takes the connection and says nothing is tried again", () => {
    const f = new Fake();
    const c = f.connection();
    c.start();
    f.timers.at(-1)();
    assert.deepEqual([c.state, f.socket.closed], ["waiting", 4000]);
  });

  test("leaving does not end what runs", async () => {
    const f = new Fake();
    const c = f.connection();
    c.start();
    await f.ready();
    c.leave();
    assert.notEqual(f.socket.closed, 1000, "1000 is the orderly end, which cancels");
    assert.equal(c.state, "closed");
  });

  test("a wait grows and has an end", () => {
    assert.ok(wait(0, 0) < wait(3, 0) && wait(30, 1) < 20_000);
  });
  test("tokens that cannot be offered", () => {
    assert.equal(usable("berth_a-B_9"), "");
    assert.notEqual(usable("a b"), "");
    assert.notEqual(usable("a,b"), "");
  });
  for (const [status, says] of [[401, /know this token/], [403, /allowed_hosts/], [429, /in 7 s/], [400, /^$/], [503, /^$/]]) {
    test(`status ${status}`, () => assert.match(refusal(status, 7), says));
  }
});

describe("files", () => {
  const bytes = (s) => new TextEncoder().encode(s);
  const cases = [
    ["a picture where pictures are taken", {name: "a.png", type: "image/png", bytes: bytes("x")}, {image: true}, {type: "image", mimeType: "image/png", data: "eA=="}],
    ["a picture where they are not", {name: "a.png", type: "image/png", bytes: new Uint8Array([0, 255])}, {}, {type: "resource", resource: {uri: "attachment:///a.png", mimeType: "image/png", blob: "AP8="}}],
    ["an SVG is text", {name: "a b.svg", type: "image/svg+xml", bytes: bytes("<svg/>")}, {image: true}, {type: "resource", resource: {uri: "attachment:///a%20b.svg", mimeType: "image/svg+xml", text: "<svg/>"}}],
    ["text of no type", {name: "Makefile", type: "", bytes: bytes("all:\n")}, {}, {type: "resource", resource: {uri: "attachment:///Makefile", mimeType: "text/plain", text: "all:\n"}}],
    ["what is no UTF-8", {name: "x", type: "", bytes: new Uint8Array([0xc3, 0x28])}, {}, {type: "resource", resource: {uri: "attachment:///x", mimeType: "application/octet-stream", blob: "wyg="}}],
  ];
  for (const [name, file, can, want] of cases) test(name, () => assert.deepEqual(files.blockOf(file, can), want));
  test("much text is stored, not read out", () => assert.ok(files.blockOf({name: "x", type: "text/plain", bytes: bytes("x".repeat(200_000))}).resource.blob));
  test("many bytes", () => assert.equal(atob(files.base64(new Uint8Array(100_001).fill(7))).length, 100_001));
  test("limits", () => {
    const limits = {maxBlobBytes: 10, maxPromptBlobBytes: 15};
    assert.equal(files.tooLarge("a", 10, 5, limits), "");
    assert.match(files.tooLarge("a", 11, 0, limits), /too large/);
    assert.match(files.tooLarge("a", 10, 6, limits), /too much/);
    assert.equal(files.tooLarge("a", 1 << 20, 0), "");
  });

  test("a session as Markdown", () => {
    const s = new state.Session("s");
    for (const u of [
      {sessionUpdate: "user_message_chunk", messageId: "u", content: t("Change it")}, {sessionUpdate: "user_message_chunk", messageId: "u", content: {type: "image", data: ""}},
      {sessionUpdate: "agent_thought_chunk", content: t("First\nthen")}, {sessionUpdate: "agent_message_chunk", content: t("Done:\n```\nx\n```")},
      {sessionUpdate: "tool_call", toolCallId: "c", title: "Edit a", status: "completed", content: [{type: "diff", path: "/a", oldText: "x\n", newText: "y\n"}, {type: "content", content: t("```` \u001b[31mred")}]},
    ]) s.apply(u);
    s.ended("error", {text: "529"});
    assert.equal(files.transcript(s, "T", ["main", "", "/p"]),
      "# T\n\nmain · /p\n\n## Prompt\n\nChange it\n\n[image]\n\n> First\n> then\n\n## Answer\n\nDone:\n```\nx\n```\n\n### Edit a (completed)\n\n" +
      "```diff\n--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+y\n```\n\n`````\n```` red\n`````\n\nThe turn failed: 529\n");
  });
});

describe("opened", () => {
  /** sessionOf has calls answered by hand. */
  function sessionOf() {
    const calls = [];
    const told = [];
    const o = new Opened({
      id: "s", cwd: "/p", changed: () => {}, tell: (method, params) => told.push({method, params}),
      call: (method, params) => new Promise((yes, no) => calls.push({method, params, yes, no})),
    });
    return {o, calls, told, story: () => o.session.items.map((i) => `${i.type}:${i.blocks ? state.words(i.blocks) : i.reason ?? i.title}`)};
  }
  const error = (reason, code = -32000) => Object.assign(new Error(reason), {reason, code});
  const said = (s, id = "m") => ({sessionUpdate: "agent_message_chunk", messageId: id, content: t(s)});
  const stop = {stopReason: "end_turn"};

  test("loads, and is ours", async () => {
    const {o, calls, story} = sessionOf();
    const done = o.load();
    assert.deepEqual(calls[0].params, {sessionId: "s", cwd: "/p", mcpServers: []});
    o.apply(said("a"));
    calls[0].yes({_meta: {berth: {agent: "main"}}});
    await done;
    assert.deepEqual([o.mode, o.meta.agent, story()], ["owner", "main", ["agent:a"]]);
  });

  test("a load says all directories, for it would change them", () => {
    const calls = [];
    new Opened({id: "s", cwd: "/p", additional: ["/q"], changed: () => {}, call: (m, p) => (calls.push(p), new Promise(() => {}))}).load();
    assert.deepEqual(calls, [{sessionId: "s", cwd: "/p", mcpServers: [], additionalDirectories: ["/q"]}]);
  });

  test("is watched while another has it, and taken over on request", async () => {
    const {o, calls} = sessionOf();
    let done = o.load();
    calls[0].no(error("SESSION_ACTIVE", -31003));
    await settle();
    assert.deepEqual([calls[1].method, calls[1].params], ["_berth/session/observe", {sessionId: "s", replay: true}]);
    calls[1].yes({_meta: {berth: {running: "t1", queued: [{turnId: "t2", text: "later"}]}}});
    await done;
    assert.deepEqual([o.mode, o.running, o.queue.map((q) => q.text)], ["watching", 1, ["later"]]);
    o.admitted({queued: []});
    assert.equal(o.running, 0);
    done = o.load({takeover: true});
    assert.deepEqual(calls[2].params._meta, {berth: {takeover: true}});
    calls[2].yes({});
    await done;
    assert.equal(o.mode, "owner");
  });

  test("who watches sees how turns end, and each end once", async () => {
    const {o, calls, story} = sessionOf();
    const done = o.watch();
    o.apply({sessionUpdate: "session_info_update", _meta: {berth: {turnId: "t1", stopReason: "cancelled"}}});
    calls[0].yes({_meta: {berth: {running: "t1"}}});
    await done;
    o.admitted({queued: [], ended: {turnId: "t1", stopReason: "cancelled"}});
    assert.deepEqual([story(), o.running], [["end:cancelled"], 0]);
    o.admitted({running: "t2", queued: []});
    o.admitted({queued: [], ended: {turnId: "t2", error: "no route"}});
    assert.deepEqual([story(), o.session.last.text], [["end:cancelled", "end:error"], "no route"]);
    o.admitted({queued: [], ended: {turnId: "t3", stopReason: "end_turn"}});
    assert.deepEqual(story(), ["end:cancelled", "end:error", "end:end_turn"]);
  });

  test("a turn that ends while it is loaded ends once", async () => {
    const {o, calls, story} = sessionOf();
    const done = o.load();
    o.apply({sessionUpdate: "session_info_update", _meta: {berth: {turnId: "t1", stopReason: "cancelled"}}});
    calls[0].yes({_meta: {berth: {running: "t1"}}});
    await done;
    calls[1].yes({stopReason: "cancelled", _meta: {berth: {turnId: "t1", usage: {inputTokens: 3, outputTokens: 1}}}});
    await settle();
    assert.deepEqual([story(), o.session.last.usage.inputTokens, o.running], [["end:cancelled"], 3, 0]);
  });

  test("is told as busy where it cannot be watched", async () => {
    const {o, calls} = sessionOf();
    const done = o.load();
    calls[0].no(error("SESSION_ACTIVE"));
    await settle();
    calls[1].no(error("METHOD_NOT_FOUND", -32601));
    await done;
    assert.equal(o.mode, "busy");
  });

  test("says why it cannot be loaded", async () => {
    const {o, calls} = sessionOf();
    const done = o.load();
    calls[0].no(error("SESSION_NOT_FOUND"));
    await done;
    assert.deepEqual([o.mode, o.error], ["failed", "SESSION_NOT_FOUND"]);
  });

  test("prompts wait behind the turn, and show in order", async () => {
    const {o, calls, story} = sessionOf();
    o.created({});
    o.prompt("one");
    o.prompt("two");
    o.apply(said("first", "1"));
    assert.deepEqual([story(), o.queue.length, o.running], [["user:one", "agent:first"], 1, 2]);
    calls[0].yes(stop);
    await settle();
    o.apply(said("second", "2"));
    calls[1].yes({stopReason: "cancelled"});
    await settle();
    assert.deepEqual(story(), ["user:one", "agent:first", "end:end_turn", "user:two", "agent:second", "end:cancelled"]);
    assert.deepEqual([o.running, o.queue.length], [0, 0]);
  });

  test("files go along, also behind a turn", async () => {
    const {o, calls} = sessionOf();
    o.created({});
    const file = {type: "image", mimeType: "image/png", data: "AA=="};
    o.prompt("look", [file]);
    o.prompt("", [file]);
    assert.deepEqual(calls.map((c) => c.params.prompt), [[t("look"), file], [file]]);
    calls[0].yes(stop);
    await settle();
    assert.deepEqual(o.session.items.filter((i) => i.type === "user").map((i) => i.blocks.length), [2, 1]);
  });

  test("a prompt that fails says so", async () => {
    const {o, calls, story} = sessionOf();
    o.created({});
    o.prompt("one");
    calls[0].no(error("PROVIDER_ERROR"));
    await settle();
    assert.deepEqual(story(), ["user:one", "end:error"]);
    assert.equal(o.session.last.text, "PROVIDER_ERROR");
    assert.equal(o.running, 0);
  });

  test("after a lost connection everything shows once, and the turn goes on", async () => {
    const {o, calls, story} = sessionOf();
    o.created({});
    o.prompt("one");
    o.apply(said("begin"));
    o.lost();
    calls[0].no(new Lost());
    await settle();
    assert.deepEqual([o.mode, o.running], ["away", 0]);
    const done = o.load();
    assert.deepEqual(calls[1].params._meta, {berth: {takeover: true}}, "the gateway may not know yet that we were lost");
    o.apply({sessionUpdate: "user_message_chunk", messageId: "u", content: t("one")});
    o.apply(said("begin and more"));
    assert.deepEqual(story(), ["user:one", "agent:begin"], "the old state stays until the new one is whole");
    calls[1].yes({_meta: {berth: {running: "t1", queued: [{turnId: "t2", text: "two"}]}}});
    await done;
    assert.deepEqual([calls[2].params, calls[3].params], [{sessionId: "s", turnId: "t1"}, {sessionId: "s", turnId: "t2"}]);
    o.apply(said(" end"));
    assert.deepEqual([story(), o.running, o.queue.length], [["user:one", "agent:begin and more end"], 2, 1]);
    calls[2].yes(stop);
    await settle();
    calls[3].yes(stop);
    await settle();
    assert.deepEqual([story(), o.running], [["user:one", "agent:begin and more end", "end:end_turn", "user:two", "end:end_turn"], 0]);
  });

  test("an answer that comes after a loss changes nothing", async () => {
    const {o, calls, story} = sessionOf();
    const done = o.load();
    o.lost();
    calls[0].yes({_meta: {berth: {running: "t"}}});
    await done;
    assert.deepEqual([o.mode, o.running, story()], ["away", 0, []]);
  });

  test("one that is taken over by another is watched", async () => {
    const {o, calls} = sessionOf();
    o.created({});
    const notice = {sessionUpdate: "notice", severity: "error", title: "Another client has taken this session over"};
    o.apply(notice);
    await settle();
    assert.deepEqual(calls, [], "the title is for people");
    o.apply({...notice, _meta: {berth: {reason: "SESSION_TAKEN"}}});
    await settle();
    assert.deepEqual([calls[0].method, o.taken], ["_berth/session/observe", true]);
    o.load({takeover: true});
    assert.equal(o.taken, false);
  });

  test("one that was not watched fast enough is watched again", async () => {
    const {o, calls} = sessionOf();
    o.watch();
    calls[0].yes({});
    await settle();
    o.apply({sessionUpdate: "notice", severity: "error", title: "Gone", _meta: {berth: {reason: "OBSERVER_DROPPED"}}});
    await settle();
    assert.deepEqual(calls.map((c) => c.method), ["_berth/session/observe", "_berth/session/observe"]);
  });

  test("is given back when nothing runs, and only then", async () => {
    const {o, calls, told} = sessionOf();
    o.created({});
    o.prompt("one");
    assert.equal(await o.release(), false);
    o.cancel();
    assert.deepEqual(told, [{method: "session/cancel", params: {sessionId: "s"}}]);
    calls[0].yes({stopReason: "cancelled"});
    await settle();
    o.release();
    assert.equal(calls[1].method, "session/close");
  });
});
