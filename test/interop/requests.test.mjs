// What the adapters send must be what the types of the providers' own clients
// allow: every request becomes a literal of such a type, and the compiler looks
// for fields that the type does not have, lacks and values out of place.
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import {mkdirSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import test from "node:test";
import {missing, program, vendors} from "./lib/vendors.mjs";

const imports = `
import type Anthropic from "@anthropic-ai/sdk";
import type {ConverseStreamCommandInput} from "@aws-sdk/client-bedrock-runtime";
import {ThinkingLevel, type GenerateContentParameters} from "@google/genai";
import type {ChatRequest} from "ollama";
import type OpenAI from "openai";
`;

/**
 * The types, by the first part of a dialect's name, and the fields they do not
 * have although the wire does:
 *
 * - compatible servers take thoughts back under names of their own
 *   (reasoning_content of DeepSeek and others, extra_content of Google,
 *   reasoning_details of OpenRouter), and OpenRouter has cache marks, counts of
 *   costs and ways to think of its own;
 * - Ollama's server knows ids and indexes of calls and refuses to cut a
 *   conversation when told so. Its client knows only a part of JSON schema.
 */
const kinds = {
  anthropic: {type: "Anthropic.MessageCreateParamsStreaming"},
  chat: {type: "OpenAI.Chat.ChatCompletionCreateParamsStreaming", more: ["reasoning_content", "extra_content"]},
  azure: {type: "OpenAI.Chat.ChatCompletionCreateParamsStreaming", more: ["reasoning_content"]},
  openrouter: {type: "OpenAI.Chat.ChatCompletionCreateParamsStreaming", more: ["cache_control", "reasoning_details", "usage", "reasoning"]},
  responses: {type: "OpenAI.Responses.ResponseCreateParamsStreaming", needs: "stream"},
  gemini: {type: "GenerateContentParameters", shape: ({generationConfig = {}, contents, ...rest}) => ({model: "m", contents, config: {...generationConfig, ...rest}})},
  ollama: {type: "ChatRequest & {stream: true}", more: ["id", "tool_call_id", "index", "truncate", "shift", "parameters"]},
  bedrock: {type: "ConverseStreamCommandInput", needs: "modelId", shape: (body) => ({modelId: "m", ...body})},
};

/** absent says which of the clients that have the types is not there. */
const absent = () => missing("typescript", "@anthropic-ai/sdk", "@aws-sdk/client-bedrock-runtime", "@google/genai", "ollama", "openai");

/** without leaves fields out of a value, however deep they are. */
function without(value, names) {
  if (Array.isArray(value)) return value.map((v) => without(v, names));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).filter(([k]) => !names.includes(k)).map(([k, v]) => [k, without(v, names)]));
}

/** declare writes the declaration of a request as the client's language has it. */
function declare(name, kind, body) {
  let text = JSON.stringify(body);
  if (kind === "gemini") text = text.replaceAll(/"thinkingLevel":"(\w+)"/g, '"thinkingLevel":ThinkingLevel.$1');
  if (kind === "bedrock") text = text.replaceAll(/"(bytes|redactedContent)":"[\w+/=]+"/g, '"$1":new Uint8Array()');
  return `export const ${name}: ${kinds[kind].type} = ${text};\n`;
}

/** shaped turns a body into what the client is given. */
const shaped = (kind, body) => (kinds[kind].shape ?? ((v) => v))(without(body, kinds[kind].more ?? []));

/** compile returns what the compiler has against a file. */
function compile(source) {
  const dir = join(vendors, "node_modules", ".requests"); // where the clients' types are found
  mkdirSync(dir, {recursive: true});
  writeFileSync(join(dir, "requests.ts"), source);
  const {stdout, status, error} = spawnSync(process.execPath, [
    join(vendors, "node_modules", "typescript", "bin", "tsc"),
    "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "requests.ts",
  ], {cwd: dir, encoding: "utf8"});
  if (error) throw error;
  const complaints = [...stdout.matchAll(/^requests\.ts\((\d+),\d+\): (error .*)$/gm)].map(([, line, text]) => ({line: Number(line), text}));
  return {status, complaints};
}

const requests = () => execFileSync(program(), ["requests"], {encoding: "utf8", maxBuffer: 1 << 26})
  .trim().split("\n").map((line) => JSON.parse(line)).filter((r) => r.method === "POST" && r.address !== "/api/show");

const kindOf = (r) => r.dialect.split("-")[0];

test("what the adapters send has the types of the providers' clients", {skip: absent()}, () => {
  const all = requests();
  assert.deepEqual([...new Set(all.map(kindOf))].sort(), Object.keys(kinds).sort());
  assert.ok(all.length > 150, `only ${all.length} requests`);
  const source = imports + all.map((r, i) => `// ${r.dialect}, ${r.case}\n${declare(`r${i}`, kindOf(r), shaped(kindOf(r), JSON.parse(r.body)))}`).join("");
  const lines = source.split("\n");
  const {status, complaints} = compile(source);
  assert.deepEqual(complaints.map(({line, text}) => `${lines[line - 2]}: ${text}`), []);
  assert.equal(status, 0);
});

test("the compiler sees a field too many, a field too few and a wrong value", {skip: absent()}, () => {
  const bodies = Object.fromEntries(requests().filter((r) => r.case === "turn").map((r) => [r.dialect, JSON.parse(r.body)]));
  const wrongs = Object.entries(kinds).flatMap(([kind, {needs = "model"}]) => {
    const {[needs]: needed, ...rest} = shaped(kind, bodies[kind]);
    const list = ["messages", "input", "contents"].find((name) => rest[name]);
    return [
      [kind, {...rest, [needs]: needed, [list]: rest[list].map((m) => ({...m, colour: "blue"}))}],
      [kind, rest],
      [kind, {...rest, [needs]: needed, [list]: 7}],
    ];
  });
  const {complaints} = compile(imports + wrongs.map(([kind, body], i) => declare(`w${i}`, kind, body)).join(""));
  const first = imports.split("\n").length;
  const seen = new Set(complaints.map(({line}) => line - first));
  assert.deepEqual(wrongs.map(([kind], i) => [kind, i]).filter(([, i]) => !seen.has(i)), []);
});
