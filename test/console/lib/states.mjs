// The states of the page that are looked at, and how each comes to be.

const chunk = (kind, text, messageId) => ({sessionUpdate: `${kind}_chunk`, content: {type: "text", text}, messageId});
const user = (text, id = "u") => chunk("user_message", text, id);
const agent = (text, id = "a") => chunk("agent_message", text, id);
const thought = (text, id = "t") => chunk("agent_thought", text, id);
const call = (toolCallId, title, rest = {}) => ({sessionUpdate: "tool_call", toolCallId, title, kind: "execute", status: "completed", ...rest});
const text = (s) => ({type: "content", content: {type: "text", text: s}});
const hour = 3_600_000;

/** rows are n sessions of a list, the newest first. */
export const rows = (n) => Array.from({length: n}, (_, i) => ({
  sessionId: `s${i}`, title: ["Correct the evening tide", "Why does the build fail on Windows only since Tuesday?", "Rename Boat to Vessel", "Review the release notes"][i % 4] + (i > 3 ? ` ${i}` : ""),
  cwd: ["/home/me/harbour", "/home/me/almanac", "/srv/lighthouse"][i % 3], updatedAt: new Date(Date.now() - i * hour).toISOString(), _meta: {berth: {agent: "main"}},
}));

const png = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FAAhKDveksOjmAAAAAElFTkSuQmCC";
const before = Array.from({length: 120}, (_, i) => `func line${i}() int { return ${i} }`).join("\n");
const big = before.replace(/return (\d)(\d)(?= )/g, "return $1$2 + 1 // a long line of a change that goes on and on until it is wider than any page could be, and then some more");

export const story = [
  user("Please correct the evening tide in tides.md, and run the checks."),
  thought("The person wants the tide table corrected. First I read it, then I change the one line."),
  agent("I will look at the **tide table** first.", "a1"),
  call("c1", "Read tides.md", {kind: "read", locations: [{path: "/home/me/harbour/tides.md", line: 3}], content: [text("# Tides\n\n18:40 4.1 m")]}),
  call("c2", "Edit tides.md", {kind: "edit", content: [{type: "diff", path: "/home/me/harbour/tides.md", oldText: "a\n| 18:40 | 4.1 m |\nb\n", newText: "a\n| 18:40 | 4.6 m |\n| 23:55 | 0.7 m |\nb\n"}]}),
  call("c3", "make check", {content: [text("ok\n")], status: "failed", rawOutput: {exit: 1}}),
  agent("## What changed\n\nThe evening tide is **4.6 m** now, as the [almanac](https://example.org) has it:\n\n1. checked the table\n2. kept the order\n\n| time | height |\n|---|--:|\n| 18:40 | 4.6 m |\n\n```go\n// Height returns metres above chart datum.\nfunc Height(t time.Time) float64 { return base + amplitude*math.Cos(phase(t)) }\n```\n\n> Mind the bar at low water.\n\nRun `make check` yourself.", "a2"),
  {sessionUpdate: "usage_update", used: 42_000, size: 200_000, cost: {amount: 0.31, currency: "USD"}},
  {sessionUpdate: "available_commands_update", availableCommands: [{name: "compact", description: "Shortens the conversation", input: {hint: "what to keep"}}, {name: "review", description: "Reviews the changes"}]},
];
const plan = {sessionUpdate: "plan", entries: [
  {content: "Read the tide table", priority: "high", status: "completed"}, {content: "Correct the evening height", priority: "medium", status: "in_progress"}, {content: "Run the checks", priority: "low", status: "pending"},
]};
const options = [
  {optionId: "a", name: "Allow once", kind: "allow_once"}, {optionId: "b", name: "Always allow edit_file in /home/me/harbour in this session", kind: "allow_always"},
  {optionId: "c", name: "Reject", kind: "reject_once"}, {optionId: "d", name: "Never allow edit_file in /home/me/harbour in this session", kind: "reject_always"},
];

/** open shows session s0 with a history; in the page, sets apply what is given. */
export async function open(c, history = story, set = {}) {
  await c.page.evaluate((history, list, set) => {
    Object.assign(gateway, {sessions: list, ...set});
    gateway.history.s0 = history;
    location.hash = "#/s/s0";
  }, history, rows(12), set);
  await c.page.waitForFunction(() => !document.getElementById("story").hidden && document.getElementById("mode").textContent !== "Loading…");
  await c.frames();
}

const say = (c, ...updates) => c.page.evaluate((updates) => gateway.update("s0", ...updates), updates);
/** working has a turn run that does not end. */
async function working(c, history = story) {
  await open(c, history, {hold: ["session/prompt"]});
  await c.prompt("And now the morning?");
  await c.page.waitForSelector("#working:not([hidden])");
}
const refuse = (code, message, reason) => ({error: {code, message, data: {reason}}});
const list = async (c, n) => {
  await c.page.evaluate((r) => {
    gateway.sessions = r;
    location.hash = "#/new";
    location.hash = "#/";
    dispatchEvent(new Event("visibilitychange"));
    document.dispatchEvent(new Event("visibilitychange"));
  }, rows(n));
  await c.page.waitForFunction((n) => document.querySelectorAll("#sessions li").length === n, {}, n);
};

/** states are [name, what brings it about, {signIn}]. */
export const states = [
  ["signed out", async (c) => c.page.waitForSelector("#token", {visible: true}), {signIn: false}],
  ["wrong token", async (c) => {
    await c.page.waitForSelector("#token", {visible: true});
    await c.page.evaluate(() => (gateway.status = 401));
    await c.page.type("#token", "berth_wrong");
    await c.page.keyboard.press("Enter");
    await c.sees("does not know", "#token-error");
  }, {signIn: false}],
  ["no sessions", async (c) => c.sees(/No sessions/, "#sidebar")],
  ["many sessions", (c) => list(c, 60)],
  ["search", async (c) => {
    await list(c, 12);
    await c.page.type("#search", "windows");
    await c.page.waitForFunction(() => document.querySelectorAll("#sessions li").length === 3);
  }],
  ["search without a match", async (c) => {
    await list(c, 12);
    await c.page.type("#search", "albatross");
    await c.sees("No session matches", "#sidebar");
  }],
  ["new session", async (c) => {
    await list(c, 3);
    await c.page.evaluate(() => (location.hash = "#/new"));
  }],
  ["new session refused", async (c) => {
    await c.page.evaluate((a) => {
      gateway.answers["session/new"] = a;
      location.hash = "#/new";
    }, refuse(-32602, "cwd: /no/such/place does not exist", "INVALID_PARAMS"));
    await c.page.waitForSelector("#cwd", {visible: true});
    await c.page.type("#cwd", "/no/such/place");
    await c.page.keyboard.press("Enter");
    await c.sees("/no/such/place", "#new-error");
  }],
  ["new and empty", async (c) => {
    await list(c, 3);
    await c.page.evaluate(() => (location.hash = "#/new"));
    await c.page.waitForSelector("#cwd", {visible: true});
    await c.page.keyboard.press("Enter");
    await c.page.waitForSelector("#send:not(:disabled)", {visible: true});
  }],
  ["story", (c) => open(c)],
  ["live turn", async (c) => {
    await working(c);
    await say(c, plan, thought("Now the morning.", "t2"), call("c9", "wc -l tides.md", {status: "in_progress"}), agent("I am looking at the morning, line by ", "a9"));
    await c.sees("line by");
  }],
  ["plan open", async (c) => {
    await working(c);
    await say(c, plan);
    await c.page.waitForSelector("#plan:not([hidden])");
    await c.page.evaluate(() => (document.getElementById("plan").open = true));
  }],
  ["prompts wait", async (c) => {
    await working(c);
    await c.prompt("Then the afternoon, please.");
    await c.prompt("And tell me when all is done, in one short sentence that nevertheless is too long for one line of a phone.");
    await c.sees("afternoon", "#queue");
  }],
  ["commands", async (c) => {
    await open(c);
    await c.page.focus("#composer-text");
    await c.page.keyboard.type("/");
    await c.page.waitForSelector("#commands:not([hidden]) li");
  }],
  ["long text", (c) => open(c, [user("A very long question. ".repeat(60)), agent(Array.from({length: 30}, (_, i) => `### Part ${i}\n\n${"Some words of a long answer, with `code` and **weight**. ".repeat(8)}`).join("\n\n")), agent(`${"unbroken".repeat(400)}\n\n    code without a fence\n\n- [x] done\n- [ ] to do\n  - deeper\n    - and deeper`, "a3")])],
  ["code", (c) => open(c, [user("Show me code"), agent("```js\nconst x = 1;\n```\n\n```\n" + "wide ".repeat(100) + "\n```\n\n```python\n" + Array.from({length: 60}, (_, i) => `line_${i} = ${i}`).join("\n") + "\n```")])],
  ["big diff", (c) => open(c, [user("Change much"), call("d", "Edit lines.go", {kind: "edit", content: [{type: "diff", path: "/home/me/harbour/lines.go", oldText: before, newText: big}, {type: "diff", path: "/home/me/harbour/very/deep/directory/with/a/long/path/of/a/file/that_is_new.go", oldText: null, newText: "package x\n"}]})])],
  ["terminal output", async (c) => {
    await open(c, [user("Run it"), call("t", "make all && ./run --with many --arguments that --make the --line too --long for --one row", {status: "failed", content: [text("```console\n$ make all\n\u001b[31mred\u001b[0m text\nprogress 1%\rprogress 100%\n" + "a long line ".repeat(40) + "\n```\n\nexit 2")], rawInput: {command: "make all"}})]);
  }],
  ["all kinds of content", (c) => open(c, [
    user("Look"), {sessionUpdate: "user_message_chunk", messageId: "u", content: {type: "image", mimeType: "image/png", data: png}},
    {sessionUpdate: "user_message_chunk", messageId: "u", content: {type: "resource_link", name: "almanac.pdf", uri: "file:///home/me/almanac.pdf", size: 123_456}},
    {sessionUpdate: "user_message_chunk", messageId: "u", content: {type: "resource", resource: {uri: "file:///home/me/notes.md", mimeType: "text/markdown", text: "# Notes\n"}}},
    agent("Here is what there is:"), {sessionUpdate: "agent_message_chunk", messageId: "a", content: {type: "image", mimeType: "image/png", data: png}},
    {sessionUpdate: "agent_message_chunk", messageId: "a", content: {type: "audio", mimeType: "audio/wav", data: "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="}},
    {sessionUpdate: "agent_message_chunk", messageId: "a", content: {type: "resource_link", name: "The almanac", uri: "https://example.org/a", description: "of this year"}},
    {sessionUpdate: "agent_message_chunk", messageId: "a", content: {type: "resource", resource: {uri: "file:///x/tide.bin", mimeType: "application/octet-stream", blob: "AAECAw=="}}},
    {sessionUpdate: "agent_message_chunk", messageId: "a", content: {type: "hologram", of: "a ship"}},
    call("k", "Paint a ship", {kind: "other", content: [{type: "content", content: {type: "image", mimeType: "image/png", data: png}}, {type: "terminal", terminalId: "term-1"}]}),
    {sessionUpdate: "current_mode_update", currentModeId: "architect"}, {sessionUpdate: "config_option_update", configOptions: []},
    {sessionUpdate: "compaction_update", compactionId: "k1", status: "completed", summary: [{type: "text", text: "They spoke of **tides**."}]},
    {sessionUpdate: "notice", severity: "warning", title: "This model is cooling down", description: "It is tried again in 20 s."},
    {sessionUpdate: "notice", severity: "info", title: "A note"}, {sessionUpdate: "notice", severity: "error", title: "The store is full", description: "Delete sessions, or make room."},
  ])],
  ["permission for an edit", async (c) => {
    await working(c);
    const content = [{type: "diff", path: "/home/me/harbour/tides.md", oldText: "a\nb\nc\n", newText: "a\nB\nc\n"}];
    await say(c, call("p", "Edit tides.md", {kind: "edit", status: "pending", content}));
    await c.page.evaluate((content, o) => gateway.ask("s0", {toolCallId: "p", title: "Edit tides.md", kind: "edit", content, rawInput: {path: "tides.md"}}, o), content, options);
    await c.asked();
  }],
  ["permission for a command", async (c) => {
    await working(c);
    await say(c, call("p", "rm", {status: "pending"}));
    const command = "find . -name '*.bak' -mtime +30 -print0 | xargs -0 rm -f && git commit -am 'remove old copies' && git push origin main";
    await c.page.evaluate((title, o) => gateway.ask("s0", {toolCallId: "p", title, kind: "execute", content: [{type: "content", content: {type: "text", text: "It writes outside of the roots, and a part of it cannot be proven to only read."}}], rawInput: {command: title}}, o), command, options);
    await c.asked();
    await c.page.evaluate((o) => gateway.ask("s0", {toolCallId: "q", title: "another", kind: "execute"}, o), options.slice(0, 1));
  }],
  ["permission put aside", async (c) => {
    await working(c);
    await say(c, call("p", "touch checked", {status: "pending"}));
    await c.page.evaluate((o) => gateway.ask("s0", {toolCallId: "p", title: "touch checked", kind: "execute"}, o), options);
    await c.asked();
    await c.page.keyboard.press("Escape");
    await c.page.waitForSelector("#ask-banner:not([hidden])");
  }],
  ["permission of a watched session", async (c) => {
    await open(c, story, {answers: {"session/load": refuse(-31003, "active", "SESSION_ACTIVE"), "_berth/session/observe": undefined}});
    await c.page.evaluate((o) => gateway.ask("s0", {toolCallId: "p", title: "touch checked", kind: "execute"}, o), options);
    await c.asked();
  }],
  ["error of the provider", async (c) => {
    await open(c, story, {answers: {"session/prompt": refuse(-32603, "The provider answered 529: overloaded. Try again in a minute, or name another model in agents.main.fallback.", "PROVIDER_ERROR")}});
    await c.prompt("Go on");
    await c.sees("529");
  }],
  ["key missing", async (c) => {
    await open(c, story, {answers: {"session/prompt": refuse(-32000, "The model anthropic/claude needs a key. Run: berth auth login anthropic", "AUTH_REQUIRED")}});
    await c.prompt("Go on");
    await c.sees("needs a key");
  }],
  ["refusal", async (c) => {
    await open(c, story, {answers: {"session/prompt": {stopReason: "refusal"}}});
    await c.prompt("Sink the ship");
    await c.sees("refused");
  }],
  ["cancelled", async (c) => {
    await working(c);
    await say(c, call("c9", "sleep 60", {status: "in_progress"}));
    await c.page.click("#cancel");
    await c.page.evaluate(() => gateway.answer("session/prompt", {stopReason: "cancelled", _meta: {berth: {usage: {inputTokens: 1200, outputTokens: 33}}}}));
    await c.sees("Cancelled");
  }],
  ["connection lost", async (c) => {
    await working(c);
    await c.page.evaluate(() => {
      gateway.up = false;
      gateway.drop();
    });
    await c.sees("connection is lost", "#link");
  }],
  ["watched", (c) => open(c, story, {answers: {"session/load": refuse(-31003, "active", "SESSION_ACTIVE")}})],
  ["taken over", async (c) => {
    await working(c);
    await say(c, {sessionUpdate: "notice", severity: "error", title: "Another client has taken this session over", _meta: {berth: {reason: "SESSION_TAKEN"}}});
    await c.sees("taken this session over", "#mode");
  }],
  ["busy elsewhere", (c) => open(c, [], {answers: {"session/load": refuse(-31003, "active", "SESSION_ACTIVE"), "_berth/session/observe": refuse(-32601, "unknown", "METHOD_NOT_FOUND")}})],
  ["no such session", async (c) => {
    await c.page.evaluate((a) => {
      gateway.answers = {"session/load": a, "_berth/session/observe": a};
      location.hash = "#/s/gone";
    }, refuse(-32002, "session gone does not exist", "SESSION_NOT_FOUND"));
    await c.sees("does not exist", "#trouble");
  }],
  ["token that only observes", async (c) => {
    await c.page.evaluate(() => {
      gateway.meta.observeOnly = true;
      gateway.drop();
    });
    await c.page.waitForFunction(() => document.getElementById("new").hidden && document.getElementById("link").hidden);
    await open(c, story, {answers: {"session/load": refuse(-32602, "denied", "DENIED")}});
  }],
  ["token revoked", async (c) => {
    await open(c);
    await c.page.evaluate(() => gateway.drop(1008, "the token was revoked"));
    await c.sees("revoked", "#token-error");
  }],
  ["files to go along", async (c) => {
    await open(c);
    await c.page.evaluate((png) => {
      const drop = new DataTransfer();
      drop.items.add(new File([Uint8Array.from(atob(png), (x) => x.charCodeAt(0))], "tide.png", {type: "image/png"}));
      drop.items.add(new File(["# Notes\n"], "a very long name of a file that nobody would give to a file but somebody did.md", {type: "text/markdown"}));
      document.getElementById("story").dispatchEvent(new DragEvent("drop", {dataTransfer: drop, bubbles: true, cancelable: true}));
    }, png);
    await c.sees("tide.png", "#files");
  }],
  ["question before a deletion", async (c) => {
    await open(c);
    await c.page.click("#menu summary");
    await c.page.click("#delete");
    await c.page.waitForSelector("#confirm[open]");
  }],
  ["menu", async (c) => {
    await open(c);
    await c.page.click("#menu summary");
  }],
  ["hostile", async (c) => {
    const bad = '<img src=x onerror="document.title=1"> \u202egpj.exe\u202c \u200b"><script>document.title=2</script>';
    await c.page.evaluate((bad) => {
      gateway.meta.agents = [{alias: bad, title: bad, description: bad.repeat(9), model: bad}, {alias: "b", title: "b"}];
      gateway.drop();
    }, bad);
    await c.page.waitForSelector("#link", {hidden: true});
    await open(c, [
      {sessionUpdate: "session_info_update", title: bad.repeat(3)}, user(bad.repeat(5)), thought(bad), agent(`${bad} [a](javascript:alert(1)) ![b](javascript:alert(2)) <b>c</b> [d](data:text/html,x) ${"\u0301".repeat(300)}${"x".repeat(5000)}`),
      call("h", bad.repeat(9), {name: bad, kind: "<b>", status: "<i>", locations: [{path: bad}], content: [{type: "diff", path: `/${bad}`, oldText: null, newText: `${bad}${"y".repeat(4000)}\n`}, text(`\u001b[2J\u001b]0;title\u0007\u001b[31m${bad}`), {type: bad}]}),
      {sessionUpdate: "plan", entries: [{content: bad.repeat(9), priority: bad, status: bad}]}, {sessionUpdate: "notice", severity: bad, title: bad, description: bad},
      {sessionUpdate: "usage_update", used: "<b>", size: 5e300, cost: {amount: "x", currency: bad}}, {sessionUpdate: "usage_update", used: 4, size: 100, cost: {amount: 1, currency: bad}},
      {sessionUpdate: "available_commands_update", availableCommands: [{name: bad, description: bad}]},
    ]);
  }],
];
