// Turns of two steps over a fake of all the wires that strangers wrote, who
// compare it with the real services every day.
import assert from "node:assert/strict";
import test from "node:test";
import {Client, M} from "./lib/client.mjs";
import {Home} from "./lib/home.mjs";
import {load, missing} from "./lib/vendors.mjs";

const KEY = "sk-interop-0123456789";

/**
 * The provider types, with what comes behind the host of the mock, and what it
 * does unlike the wire: no thoughts, or ends of replies that it has no word or
 * a wrong one for.
 */
const providers = {
  anthropic: {model: "claude-sonnet-4-5", path: "/v1"},
  "openai-compatible": {model: "gpt-5", path: "/v1"},
  "openai-responses": {model: "gpt-5", path: "/v1", lacks: ["length", "refusal"]}, // no reason with what is incomplete
  gemini: {model: "gemini-2.5-flash", path: "/v1beta"},
  ollama: {model: "llama3.2", path: "", lacks: ["thoughts", "usage", "length", "refusal"]}, // "stop" whatever happens
  openrouter: {model: "anthropic/claude-sonnet-4.5", path: "/api/v1"},
  azure: {model: "gpt-4o", path: "/openai/deployments/fake?api-version=2024-10-21"},
  // A model without cache marks behind the tools, for those it cannot read.
  bedrock: {model: "amazon.nova-pro-v1:0", path: "?region=us-east-1", lacks: ["refusal"]}, // OpenAI's word for it
};

/** Counts in the words of the wires. */
const usage = {prompt_tokens: 1200, completion_tokens: 34, input_tokens: 1200, output_tokens: 34, promptTokenCount: 1200, candidatesTokenCount: 34, totalTokenCount: 1234};

async function mock(t, chunkSize = 3) {
  const {LLMock} = await load("@copilotkit/aimock");
  const m = new LLMock({port: 0, host: "127.0.0.1", chunkSize, logLevel: "silent"});
  await m.start();
  t.after(() => m.stop());
  return m;
}

const open = (t, m, type) => Client.open(t, new Home(t, {
  files: {"notiz-ä.txt": "grüße aus köln 🌉\n"},
  config: `
[providers.mock]
type = "${type}"
base_url = "${m.url}${providers[type].path}"
api_key = "env:INTEROP_KEY"
max_retries = 1

[providers.mock.models."${providers[type].model}"]
context_window = 100000
thoughts = true

[agents.main]
model = "mock/${providers[type].model}"
`}), {env: {INTEROP_KEY: KEY}});

test("aimock answers", {skip: missing("@copilotkit/aimock"), concurrency: true}, async (t) => {
  await Promise.all(Object.entries(providers).map(([type, {lacks = []}]) => t.test(type, async (t) => {
    const m = await mock(t);
    const says = (user, response, hasToolResult = false) => m.addFixture({match: {userMessage: user, hasToolResult}, response: {usage, ...response}});
    says("Was steht", {
      content: "Ich sehe nach: 🌍.", reasoning: "Welche Datei? Die eine — 🌍.",
      toolCalls: [{name: "read_file", arguments: '{"path":"notiz-ä.txt"}', id: "call_abc"}, {name: "read_file", arguments: '{"path":"fehlt.txt"}', id: "call_def"}],
      ...(type === "gemini" && {finishReason: "stop"}), // what it sends for calls is no reason of Gemini's
    });
    says("Was steht", {content: "Darin steht: Grüße."}, true);
    says("long", {content: "As far as this", finishReason: "length"});
    says("forbidden", {content: "I cannot", finishReason: "content_filter"});
    const c = await open(t, m, type);
    const id = await c.session();

    // A turn of two steps. The mock takes messages of all wires apart, so what
    // it found in the second request is what the adapter meant.
    assert.equal((await c.prompt(id, "Was steht in der Notiz?")).stopReason, "end_turn");
    assert.equal(c.text(), "Ich sehe nach: 🌍.Darin steht: Grüße.");
    assert.equal(c.text(0, "agent_thought_chunk"), lacks.includes("thoughts") ? "" : "Welche Datei? Die eine — 🌍.");
    assert.deepEqual(c.of("tool_call_update").map((u) => u.status).filter((s) => s !== "in_progress").sort(), ["completed", "failed"]);
    if (!lacks.includes("usage")) assert.equal(c.of("usage_update").at(-1).used, 1234);
    const [, second] = m.getRequests();
    const {tools, messages} = second.body;
    assert.ok(tools.some((tool) => tool.function.name === "read_file"));
    assert.equal(messages[0].role, "system");
    const calls = messages.flatMap((msg) => msg.tool_calls ?? []);
    assert.deepEqual(calls.map((call) => JSON.parse(call.function.arguments)), [{path: "notiz-ä.txt"}, {path: "fehlt.txt"}]);
    const outputs = messages.filter((msg) => msg.role === "tool");
    assert.equal(outputs.length, 2);
    assert.match(JSON.stringify(outputs.find((o) => !/fehlt/.test(JSON.stringify(o.content)))), /grüße aus köln 🌉/);

    for (const [what, text, answer, stop] of [["length", "a long one", "As far as this", "max_tokens"], ["refusal", "a forbidden one", "I cannot", "refusal"]]) {
      if (lacks.includes(what)) continue;
      const from = c.updates.length;
      assert.equal((await c.prompt(id, text)).stopReason, stop);
      assert.equal(c.text(from), answer);
    }

    const refused = async (status, message) => {
      m.nextRequestError(status, {message});
      const e = await c.refused(M.agent.session.prompt, {sessionId: id, prompt: [{type: "text", text: "long"}]});
      assert.match(e.message, new RegExp(message));
      return e.data.reason;
    };
    assert.equal(await refused(401, "bad key"), "AUTH_REQUIRED");
    assert.equal(await refused(404, "no such model"), "PROVIDER_REJECTED");
    const before = m.getRequests().length;
    m.nextRequestError(429, {message: "slow down", type: "rate_limit_error"});
    await c.prompt(id, "Was steht noch da?");
    assert.equal(m.getRequests().length, before + 3, "it was not asked again");
  })));
});
