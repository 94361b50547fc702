// The judges are judged: a monitor that never objects proves nothing.
import assert from "node:assert/strict";
import test from "node:test";
import {Monitor} from "./lib/monitor.mjs";
import {Judge} from "./lib/schema.mjs";

const judge = new Judge();
const say = (text) => ({sessionUpdate: "agent_message_chunk", content: {type: "text", text}});
const update = (u, sessionId = "s") => ({jsonrpc: "2.0", method: "session/update", params: {sessionId, update: u}});
const result = (id, r) => ({jsonrpc: "2.0", id, result: r});

/** play runs messages through a monitor: [">", msg] or ["<", msg or line]. */
function play(...steps) {
  const m = new Monitor(judge);
  for (const [dir, msg] of [
    [">", {jsonrpc: "2.0", id: 1, method: "session/new", params: {cwd: "/p", mcpServers: []}}],
    ["<", result(1, {sessionId: "s"})],
    [">", {jsonrpc: "2.0", id: 2, method: "session/prompt", params: {sessionId: "s", prompt: []}}],
    ...steps,
  ]) {
    if (dir === ">") m.client(msg);
    else m.agent(typeof msg === "string" ? msg : JSON.stringify(msg));
  }
  m.end();
  return m.faults;
}

const done = ["<", result(2, {stopReason: "end_turn"})];
const call = (status, more = {}) => ["<", update({sessionUpdate: "tool_call", toolCallId: "c", title: "t", status, ...more})];

test("a proper turn has no faults", () => {
  const faults = play(
    ["<", update(say("a"))],
    call("pending", {kind: "read", rawInput: {any: {thing: 1}}, _meta: {berth: {x: 1}}, locations: [{path: "/p/a", line: 3}]}),
    ["<", update({sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed", content: [{type: "diff", path: "/p/a", oldText: null, newText: "x"}]})],
    done,
  );
  assert.deepEqual(faults, []);
});

for (const [name, want, ...steps] of [
  ["a line that is not JSON", "not JSON", ["<", "hello"], done],
  ["a batch", "not an object", ["<", "[]"], done],
  ["no version", "jsonrpc", ["<", {id: 2, result: {stopReason: "end_turn"}}]],
  ["a stop reason nobody knows", "session/prompt result/stopReason", ["<", result(2, {stopReason: "finished"})]],
  ["a custom field at the root of a result", "custom fields belong in _meta", ["<", result(2, {stopReason: "end_turn", content: "x"})]],
  ["a custom field deep inside", "/update/content/mood", ["<", update({...say("a"), content: {type: "text", text: "a", mood: "fine"}})], done],
  ["an update of no known kind", "session/update params", ["<", update({sessionUpdate: "agent_mood", mood: "x"})], done],
  ["text after the answer", "outside a turn", done, ["<", update(say("late"))]],
  ["a session nobody was told of", "not been told of", ["<", update(say("a"), "other")], done],
  ["a prompt without an answer", "has no answer"],
  ["two answers", "answered twice", done, done],
  ["an answer nobody asked for", "which was not asked", ["<", result(99, {})], done],
  ["a call that stays open", "is pending after the answer", call("pending"), done],
  ["a call that was not announced", "was not announced", ["<", update({sessionUpdate: "tool_call_update", toolCallId: "x", status: "completed"})], done],
  ["a call announced twice", "announced twice", call("completed"), call("completed"), done],
  ["a finished call that goes on", "and is now", call("completed"), ["<", update({sessionUpdate: "tool_call_update", toolCallId: "c", status: "in_progress"})], done],
  ["an error without a reason", "no data.reason", ["<", {jsonrpc: "2.0", id: 2, error: {code: -32603, message: "x"}}]],
  ["an error without a code", "no code", ["<", {jsonrpc: "2.0", id: 2, error: {message: "x", data: {reason: "X"}}}]],
  ["a method of no protocol", "no method of the protocol", ["<", {jsonrpc: "2.0", id: 7, method: "fs/delete", params: {}}], done],
  ["an id used twice", "twice", ...[1, 2].map(() => ["<", {jsonrpc: "2.0", id: "a", method: "fs/read_text_file", params: {sessionId: "s", path: "/p/a"}}]), done],
]) {
  test(`${name} is a fault`, () => {
    const faults = play(...steps);
    assert.ok(faults.some((f) => f.includes(want)), `faults ${JSON.stringify(faults)}, want one with ${JSON.stringify(want)}`);
  });
}
