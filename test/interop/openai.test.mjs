// A turn of two steps over a real HTTP endpoint with the OpenAI-compatible
// wire. The endpoint cuts its stream where real ones do and clients break:
// inside arguments, inside a character, inside a line.
import assert from "node:assert/strict";
import test from "node:test";
import {Client, M} from "./lib/client.mjs";
import {Home} from "./lib/home.mjs";
import {cut, done, event, serve} from "./lib/openai.mjs";

const KEY = "sk-interop-0123456789";

function home(t, url, files = {}) {
  const config = `
[providers.local]
type = "openai-compatible"
base_url = "${url}"
api_key = "env:INTEROP_KEY"
max_retries = 1

[agents.main]
model = "local/m"
`;
  return new Home(t, {config, files});
}

const call = (index, id, name, args) => ({tool_calls: [{index, ...(id && {id, type: "function"}), function: {...(name && {name}), arguments: args}}]});

/** reply of the second step: it quotes what the tool found. */
function quoting(body) {
  const result = body.messages.findLast((m) => m.role === "tool").content;
  const text = /grüße[^\n]*/.exec(typeof result === "string" ? result : result.map((p) => p.text).join(""))?.[0] ?? "nothing";
  return [event({role: "assistant", content: `It says: ${text}`}), event({}, "stop"), done];
}

for (const [name, split] of [
  ["whole events", (s) => [s]],
  ["one byte at a time", (s) => cut(s, 1)],
  ["seven bytes at a time", (s) => cut(s, 7)],
  ["in the middle of characters and lines", (s) => cut(s, 61)],
]) {
  test(`two steps, the stream arrives ${name}`, async (t) => {
    const args = '{"path":"notizen-ä-🌍.txt"}';
    // The arguments come in five deltas, cut between any two characters.
    const parts = [...args].reduce((all, ch, i) => ((all[Math.floor(i / 6)] = (all[Math.floor(i / 6)] ?? "") + ch), all), []);
    const first =
      event({role: "assistant", content: ""}) +
      event({content: "Ich sehe nach: "}) +
      event({content: "🌍."}) +
      event(call(0, "call_abc", "read_file", "")) +
      parts.map((p) => event(call(0, undefined, undefined, p))).join("") +
      event({}, "tool_calls") +
      `data: ${JSON.stringify({id: "x", object: "chat.completion.chunk", choices: [], usage: {prompt_tokens: 10, completion_tokens: 5, total_tokens: 15}})}\n\n` +
      done;
    const endpoint = await serve(t, [() => split(first), quoting]);
    const h = home(t, endpoint.url, {"notizen-ä-🌍.txt": "zeile eins\ngrüße aus köln 🌉\n"});
    const c = await Client.open(t, h, {env: {INTEROP_KEY: KEY}});
    const id = await c.session();
    const {stopReason} = await c.prompt(id, "Was steht in der Notiz?");
    assert.equal(stopReason, "end_turn");
    assert.equal(c.text(), "Ich sehe nach: 🌍.It says: grüße aus köln 🌉");
    assert.equal(c.of("tool_call_update").at(-1).status, "completed");
    const [one, two] = endpoint.requests;
    assert.equal(endpoint.requests.length, 2);
    assert.equal(one.url, "/v1/chat/completions");
    assert.equal(one.headers.authorization, `Bearer ${KEY}`);
    assert.equal(one.body.stream, true);
    assert.ok(one.body.tools.some((tool) => tool.function.name === "read_file"));
    const asked = two.body.messages.find((m) => m.tool_calls)?.tool_calls[0];
    assert.deepEqual(JSON.parse(asked.function.arguments), JSON.parse(args));
    assert.equal(two.body.messages.at(-1).tool_call_id, asked.id);
  });
}

test("a wrong key is an authentication error, and the key is told to nobody", async (t) => {
  const refuse = () => ({status: 401, body: {error: {message: `Incorrect API key provided: ${KEY}`, type: "invalid_request_error", code: "invalid_api_key"}}});
  const endpoint = await serve(t, [refuse, refuse, refuse]);
  const c = await Client.open(t, home(t, endpoint.url), {env: {INTEROP_KEY: KEY}});
  const id = await c.session();
  const e = await c.refused(M.agent.session.prompt, {sessionId: id, prompt: [{type: "text", text: "hi"}]});
  assert.equal(e.code, -32000);
  assert.equal(e.data.reason, "AUTH_REQUIRED");
  assert.ok(!JSON.stringify([e.message, e.data]).includes(KEY), e.message);
  await c.close();
  assert.ok(!c.stderr.includes(KEY), c.stderr);
});

test("a stream that is cut short is an error and no empty success", async (t) => {
  const endpoint = await serve(t, [() => [event({role: "assistant", content: "Half a sen"})]]);
  const c = await Client.open(t, home(t, endpoint.url), {env: {INTEROP_KEY: KEY}});
  const id = await c.session();
  const e = await c.refused(M.agent.session.prompt, {sessionId: id, prompt: [{type: "text", text: "hi"}]});
  assert.equal(e.data.reason, "PROVIDER_ERROR");
  assert.equal(c.text(), "Half a sen");
});

test("a busy provider is asked again", async (t) => {
  const busy = () => ({status: 429, headers: {"retry-after": "0"}, body: {error: {message: "slow down", type: "rate_limit_error"}}});
  const endpoint = await serve(t, [busy, () => [event({role: "assistant", content: "Here."}), event({}, "stop"), done]]);
  const c = await Client.open(t, home(t, endpoint.url), {env: {INTEROP_KEY: KEY}});
  const id = await c.session();
  assert.equal((await c.prompt(id, "hi")).stopReason, "end_turn");
  assert.equal(c.text(), "Here.");
  assert.equal(endpoint.requests.length, 2);
});
