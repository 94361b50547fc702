// The providers' own clients read the fakes that the adapters are proven by:
// what such a client does not understand, or takes for something else, no
// provider would send.
import assert from "node:assert/strict";
import test from "node:test";
import {packageOf, readers} from "./lib/readers.mjs";
import {Fakes, missing, problems} from "./lib/vendors.mjs";

/** What the clients call the ends of a reply. */
const ends = {
  anthropic: {calls: "tool_use", stop: "end_turn", length: "max_tokens", refusal: "refusal"},
  openai: {calls: "tool_calls", stop: "stop", length: "length", refusal: "content_filter"},
  responses: {calls: "completed", stop: "completed", length: "max_output_tokens", refusal: "content_filter"},
  gemini: {calls: "STOP", stop: "STOP", length: "MAX_TOKENS", refusal: "SAFETY"},
  ollama: {calls: "stop", stop: "stop", length: "length", refusal: "content_filter"},
  bedrock: {calls: "tool_use", stop: "end_turn", length: "max_tokens", refusal: "content_filtered"},
};

/** What the clients throw: the name of the class and the status. */
const classes = (...names) => Object.fromEntries(["key", "forbids", "no-model", "too-long", "broken"].map((scene, i) => [scene, names[i]]));
const openaiErrors = classes("AuthenticationError 401", "PermissionDeniedError 403", "NotFoundError 404", "BadRequestError 400", "InternalServerError 500");
const plainErrors = (name) => classes(`${name} 401`, `${name} 403`, `${name} 404`, `${name} 400`, `${name} 500`);
const errors = {
  anthropic: {...openaiErrors, fault: "APIError overloaded_error", misfit: "APIError invalid_request_error"},
  openai: {...openaiErrors, fault: "APIError server_error", misfit: "APIError invalid_request_error"},
  openrouter: {...openaiErrors, fault: "APIError 529", misfit: "APIError 400"},
  responses: {...openaiErrors, fault: "Error server_error", misfit: "APIError invalid_request_error"},
  gemini: {...plainErrors("ApiError"), fault: "ApiError 529", misfit: "ApiError 400"},
  ollama: {...plainErrors("ResponseError"), fault: "Error", misfit: "Error"},
  bedrock: {
    ...classes("UnrecognizedClientException 401", "AccessDeniedException 403", "ResourceNotFoundException 404", "ValidationException 400", "InternalServerException 500"),
    fault: "ServiceUnavailableException", misfit: "ValidationException",
  },
};

/** kin names what a reader's client is of. */
const kin = (name) => ({chat: "openai", azure: "openai", openrouter: "openai"})[name.split("-")[0]] ?? name.split("-")[0];

/** counted is the usage of a fake as far as a client can tell it. */
function counted(name) {
  const all = {input: 1200, cached: 1000, output: 345, thought: 45};
  if (kin(name) === "bedrock" || kin(name) === "ollama") delete all.thought;
  if (kin(name) === "ollama") delete all.cached;
  return all;
}

/** named describes an error: its class, and the best there is to tell it by. */
function named(e) {
  const name = e.constructor.name === "BedrockRuntimeServiceException" ? e.name : e.constructor.name;
  const told = e.status ?? e.status_code ?? e.$metadata?.httpStatusCode ?? e.type ?? e.fault?.code ?? e.code;
  return [name, told].filter((x) => x !== undefined && x !== null).join(" ");
}

const quiet = ({said, ...rest}) => rest;

/** understood is the test of one client over fakes of its own. */
const understood = (name, read) => async (t) => {
  const fakes = new Fakes(t);
  const end = ends[kin(name)];
  const cases = [];
  const check = (what, ...more) => cases.push(t.test(what, ...more));

  for (const [scene, pace] of [["turn", "in whole events"], ["cut", "one byte at a time"]]) {
    check(`a turn of two steps, ${pace}`, async () => {
      const at = await fakes.start(name, scene);
      const first = await read(at);
      assert.deepEqual(quiet(first), {
        text: "Grüße, I read <both> & 🌉.", thought: "Which files? Both — 🌍.", usage: counted(name), finish: end.calls,
        calls: [
          {id: "call_1", name: "read_file", args: {path: "ä <1>.txt", deep: {list: [1, 2.5, null, true]}}},
          {id: "call_2", name: "list_files", args: {}},
        ],
      });
      const second = await read(at, first);
      assert.deepEqual(quiet(second), {text: "Done.", thought: "", calls: [], usage: counted(name), finish: end.stop});
      // What the client made of the reply is what the fake wants back.
      // Cache marks are what Berth must set; other clients need not.
      assert.deepEqual((await problems(at)).filter((p) => !p.includes("finds nothing in a cache")), []);
    });
  }

  for (const [scene, text] of [["length", "As far as this"], ["refusal", "I can"]]) {
    check(`a reply that ends by ${scene}`, async () => {
      const at = await fakes.start(name, scene);
      assert.deepEqual(quiet(await read(at)), {text, thought: "", calls: [], usage: counted(name), finish: end[scene]});
    });
  }

  check("a limit of the rate is waited for", {skip: kin(name) === "ollama" && "it never asks again"}, async () => {
    const at = await fakes.start(name, "limited");
    const start = performance.now();
    assert.equal((await read(at, undefined, 1)).text, "Later.");
    if (kin(name) !== "gemini") assert.ok(performance.now() - start > 900, "the client did not see Retry-After");
  });

  for (const [scene, want] of Object.entries(errors[name] ?? errors[kin(name)])) {
    check(`the error of ${scene}`, async () => {
      const at = await fakes.start(name, scene);
      const e = await read(at).then((seen) => assert.fail(`it was taken for ${JSON.stringify(seen)}`), (e) => e);
      if (e instanceof assert.AssertionError) throw e;
      assert.equal(named(e), want, e.stack);
      assert.match(e.message, /in these words/);
    });
  }
  await Promise.all(cases);
};

test("the providers' clients understand the fakes", {concurrency: true}, (t) => Promise.all(Object.entries(readers).map(([name, read]) =>
  t.test(name, {skip: missing(packageOf(name)), concurrency: true}, understood(name, read)))));
