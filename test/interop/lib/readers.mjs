// One reader for each of the providers' clients. A reader asks the fake at an
// address and returns what the client saw, in one form for all:
//
//   {text, thought, calls: [{id, name, args}], usage, finish, said}
//
// where usage is {input, cached, output, thought} with undefined for what the
// client does not tell, and said is how the reply goes back with the next
// request. Given said and the outputs of its calls, the reader asks that.
import {load} from "./vendors.mjs";

const schema = {type: "object", properties: {path: {type: "string"}}};
const tools = ["read_file", "list_files"];
const system = "You are a test.";
const question = "Please read.";

/** spoken begins what a reader returns. */
const spoken = () => ({text: "", thought: "", calls: []});

async function anthropic(at, back, retries = 0, thinking) {
  const {default: Anthropic} = await load("@anthropic-ai/sdk");
  const client = new Anthropic({apiKey: at.key, baseURL: at.url, maxRetries: retries, authToken: null});
  const stream = client.messages.stream({
    model: at.model, max_tokens: 20_000, thinking,
    system: [{type: "text", text: system, cache_control: {type: "ephemeral"}}],
    tools: tools.map((name) => ({name, input_schema: schema})),
    messages: [
      {role: "user", content: [{type: "text", text: question}]},
      ...(back ? [
        {role: "assistant", content: back.said},
        {role: "user", content: back.calls.map(({id}, i) => ({type: "tool_result", tool_use_id: id, content: "it", is_error: i === 1}))},
      ] : []),
    ],
  });
  const seen = spoken();
  stream.on("text", (s) => (seen.text += s)).on("thinking", (s) => (seen.thought += s));
  const m = await stream.finalMessage();
  seen.calls = m.content.filter((b) => b.type === "tool_use").map((b) => ({id: b.id, name: b.name, args: b.input}));
  const u = m.usage;
  seen.usage = {
    input: u.input_tokens + u.cache_creation_input_tokens + u.cache_read_input_tokens, cached: u.cache_read_input_tokens,
    output: u.output_tokens, thought: u.output_tokens_details?.thinking_tokens,
  };
  return {...seen, finish: m.stop_reason, said: m.content};
}

/** chat reads chat completions with a client of OpenAI's. */
async function chat(client, at, back, extra = {}, thoughts = "reasoning_content") {
  const request = {
    model: at.model, stream: true, stream_options: {include_usage: true}, ...extra,
    tools: tools.map((name) => ({type: "function", function: {name, parameters: schema}})),
    messages: [
      {role: "system", content: system}, {role: "user", content: question},
      ...(back ? [back.said, ...back.calls.map(({id}) => ({role: "tool", tool_call_id: id, content: "it"}))] : []),
    ],
  };
  const runner = client.chat.completions.stream(request);
  const seen = spoken();
  const kept = {}; // what the client's own reading of a reply drops
  const extras = [];
  runner.on("chunk", (c) => {
    const delta = c.choices[0]?.delta ?? {};
    seen.thought += delta[thoughts] ?? "";
    for (const call of delta.tool_calls ?? []) if (call.extra_content) extras[call.index] = call.extra_content;
    for (const d of delta.reasoning_details ?? []) {
      kept.reasoning_details ??= [];
      const old = kept.reasoning_details[d.index];
      kept.reasoning_details[d.index] = old ? {...old, ...d, ...(old.text && {text: old.text + (d.text ?? "")})} : d;
    }
  }).on("content", (s) => (seen.text += s));
  const whole = await runner.finalChatCompletion();
  const {message, finish_reason} = whole.choices[0];
  if (seen.text !== (message.content ?? "")) throw new Error(`pieces ${seen.text}, whole ${message.content}`);
  seen.calls = (message.tool_calls ?? []).map((c) => ({id: c.id, name: c.function.name, args: JSON.parse(c.function.arguments)}));
  const u = whole.usage;
  seen.usage = u && {
    input: u.prompt_tokens, cached: u.prompt_tokens_details.cached_tokens,
    output: u.completion_tokens, thought: u.completion_tokens_details.reasoning_tokens,
  };
  if (thoughts === "reasoning_content" && seen.thought) kept.reasoning_content = seen.thought;
  const said = {role: "assistant", content: message.content, ...kept};
  if (message.tool_calls?.length) {
    said.tool_calls = message.tool_calls.map(({id, type, function: {name, arguments: args}}, i) =>
      ({id, type, function: {name, arguments: args}, ...(extras[i] && {extra_content: extras[i]})}));
  }
  return {...seen, finish: finish_reason, said};
}

async function openaiChat(at, back, maxRetries = 0) {
  const {OpenAI} = await load("openai");
  return chat(new OpenAI({apiKey: at.key, baseURL: at.url + at.path, maxRetries}), at, back);
}

async function openrouter(at, back, maxRetries = 0) {
  const {OpenAI} = await load("openai");
  const marked = {usage: {include: true}, stream_options: undefined};
  const client = new OpenAI({apiKey: at.key, baseURL: at.url + at.path, maxRetries});
  // Instructions carry a cache mark, as the fake demands of models of Anthropic's.
  const create = client.chat.completions.stream.bind(client.chat.completions);
  client.chat.completions.stream = (r) => create({...r, messages: r.messages.map((m) =>
    (m.role === "system" ? {...m, content: [{type: "text", text: m.content, cache_control: {type: "ephemeral"}}]} : m))});
  return chat(client, at, back, marked, "reasoning");
}

async function azure(at, back, maxRetries = 0) {
  const {AzureOpenAI} = await load("openai");
  const [path, query] = at.path.split("?");
  const dated = query && {deployment: path.split("/").at(-1), endpoint: at.url, apiVersion: query.split("=")[1]};
  if (dated) return chat(new AzureOpenAI({apiKey: at.key, maxRetries, ...dated}), at, back);
  const {OpenAI} = await load("openai");
  return chat(new OpenAI({apiKey: at.key, baseURL: at.url + at.path, maxRetries, defaultHeaders: {Authorization: null, "api-key": at.key}}), at, back);
}

async function responses(at, back, maxRetries = 0) {
  const {OpenAI} = await load("openai");
  const client = new OpenAI({apiKey: at.key, baseURL: at.url + at.path, maxRetries});
  const stream = client.responses.stream({
    model: at.model, store: false, include: ["reasoning.encrypted_content"], instructions: system,
    tools: tools.map((name) => ({type: "function", name, parameters: schema, strict: false})),
    input: [
      {type: "message", role: "user", content: [{type: "input_text", text: question}]},
      ...(back ? [...back.said, ...back.calls.map(({id}) => ({type: "function_call_output", call_id: id, output: "it"}))] : []),
    ],
  });
  const seen = spoken();
  stream.on("response.output_text.delta", (e) => (seen.text += e.delta))
    .on("response.reasoning_summary_text.delta", (e) => (seen.thought += e.delta));
  // The client has no reading of an event for errors, or of a failure.
  const failed = new Promise((_, no) => stream.on("event", (e) => {
    if (e.type === "error") no(Object.assign(new Error(e.message), {fault: e}));
    if (e.type === "response.failed") no(Object.assign(new Error(e.response.error.message), {fault: e.response.error}));
  }));
  const r = await Promise.race([stream.finalResponse(), failed]);
  if (r.output_text !== seen.text) throw new Error(`pieces ${seen.text}, whole ${r.output_text}`);
  seen.calls = r.output.filter((i) => i.type === "function_call").map((i) => ({id: i.call_id, name: i.name, args: JSON.parse(i.arguments)}));
  const u = r.usage;
  seen.usage = u && {input: u.input_tokens, cached: u.input_tokens_details.cached_tokens, output: u.output_tokens, thought: u.output_tokens_details.reasoning_tokens};
  // An item goes back without what only replies have.
  const said = r.output.map(({status, parsed_arguments, ...item}) => {
    if (item.type === "message") return {type: item.type, role: item.role, content: r.output_text, phase: item.phase};
    if (item.type === "function_call") return {type: item.type, call_id: item.call_id, name: item.name, arguments: item.arguments};
    return item;
  });
  return {...seen, finish: r.incomplete_details?.reason ?? r.status, said};
}

async function gemini(at, back, retries = 0) {
  const {GoogleGenAI} = await load("@google/genai");
  const client = new GoogleGenAI({
    apiKey: at.key, httpOptions: {baseUrl: at.url, retryOptions: {attempts: retries + 1}},
  });
  const stream = await client.models.generateContentStream({
    model: at.model,
    config: {systemInstruction: {parts: [{text: system}]}, tools: [{functionDeclarations: tools.map((name) => ({name, parametersJsonSchema: schema}))}]},
    contents: [
      {role: "user", parts: [{text: question}]},
      ...(back ? [
        {role: "model", parts: back.said},
        {role: "user", parts: back.calls.map(({id, name}) => ({functionResponse: {id, name, response: {output: "it"}}}))},
      ] : []),
    ],
  });
  const seen = {...spoken(), said: []};
  for await (const chunk of stream) {
    for (const part of chunk.candidates?.[0]?.content?.parts ?? []) {
      seen.said.push(part);
      if (part.text && part.thought) seen.thought += part.text;
      else if (part.text) seen.text += part.text;
      if (part.functionCall) seen.calls.push({id: part.functionCall.id, name: part.functionCall.name, args: part.functionCall.args});
    }
    const u = chunk.usageMetadata;
    if (u) seen.usage = {input: u.promptTokenCount, cached: u.cachedContentTokenCount, output: u.candidatesTokenCount + u.thoughtsTokenCount, thought: u.thoughtsTokenCount};
    seen.finish = chunk.candidates?.[0]?.finishReason ?? seen.finish;
  }
  return seen;
}

async function ollama(at, back) {
  const {Ollama} = await load("ollama");
  const client = new Ollama({host: at.url, headers: {Authorization: `Bearer ${at.key}`}});
  const stream = await client.chat({
    model: at.model, stream: true, truncate: false, shift: false, think: true, options: {num_ctx: 8192},
    tools: tools.map((name) => ({type: "function", function: {name, description: name, parameters: schema}})),
    messages: [
      {role: "system", content: system}, {role: "user", content: question},
      ...(back ? [back.said, ...back.calls.map(({id, name}) => ({role: "tool", tool_name: name, tool_call_id: id, content: "it"}))] : []),
    ],
  });
  const seen = spoken();
  const calls = [];
  for await (const {message, done, done_reason, prompt_eval_count, eval_count} of stream) {
    seen.text += message.content;
    seen.thought += message.thinking ?? "";
    calls.push(...(message.tool_calls ?? []));
    if (done) Object.assign(seen, {finish: done_reason, usage: {input: prompt_eval_count, output: eval_count}});
  }
  seen.calls = calls.map((c) => ({id: c.id, name: c.function.name, args: c.function.arguments}));
  seen.said = {role: "assistant", content: seen.text, thinking: seen.thought, tool_calls: calls};
  return seen;
}

async function bedrock(at, back, retries = 0) {
  const {BedrockRuntimeClient, ConverseStreamCommand} = await load("@aws-sdk/client-bedrock-runtime");
  const {NodeHttpHandler} = await load("@smithy/node-http-handler");
  const [path, query] = at.path.split("?");
  const [accessKeyId, secretAccessKey, sessionToken] = at.key.split(":");
  const identity = secretAccessKey
    ? {credentials: {accessKeyId, secretAccessKey, sessionToken}, authSchemePreference: ["sigv4"]}
    : {token: {token: at.key}, authSchemePreference: ["httpBearerAuth"]};
  const client = new BedrockRuntimeClient({
    region: query.split("=")[1], endpoint: at.url + path, maxAttempts: retries + 1, requestHandler: new NodeHttpHandler(), ...identity,
  });
  const {stream} = await client.send(new ConverseStreamCommand({
    modelId: at.model, system: [{text: system}],
    toolConfig: {tools: tools.map((name) => ({toolSpec: {name, inputSchema: {json: schema}}}))},
    messages: [
      {role: "user", content: [{text: question}]},
      ...(back ? [
        {role: "assistant", content: back.said},
        {role: "user", content: back.calls.map(({id}, i) => ({toolResult: {toolUseId: id, content: [{text: "it"}], status: i === 1 ? "error" : "success"}}))},
      ] : []),
    ],
  }));
  const seen = spoken();
  const blocks = [];
  const join = (a, b) => Buffer.concat([a ?? Buffer.alloc(0), b]);
  for await (const e of stream) {
    if (e.contentBlockStart?.start?.toolUse) blocks[e.contentBlockStart.contentBlockIndex] = {toolUse: {...e.contentBlockStart.start.toolUse, input: ""}};
    if (e.contentBlockDelta) {
      const {contentBlockIndex: i, delta} = e.contentBlockDelta;
      const block = (blocks[i] ??= {});
      if (delta.text !== undefined) {
        block.text = (block.text ?? "") + delta.text;
        seen.text += delta.text;
      }
      if (delta.toolUse) block.toolUse.input += delta.toolUse.input;
      const thought = delta.reasoningContent;
      if (thought?.redactedContent) block.reasoningContent = {redactedContent: join(block.reasoningContent?.redactedContent, thought.redactedContent)};
      else if (thought) {
        const {text = "", signature = ""} = block.reasoningContent?.reasoningText ?? {};
        block.reasoningContent = {reasoningText: {text: text + (thought.text ?? ""), signature: signature + (thought.signature ?? "")}};
        seen.thought += thought.text ?? "";
      }
    }
    if (e.messageStop) seen.finish = e.messageStop.stopReason;
    if (e.metadata) {
      const u = e.metadata.usage;
      seen.usage = {input: u.inputTokens + u.cacheReadInputTokens + u.cacheWriteInputTokens, cached: u.cacheReadInputTokens, output: u.outputTokens};
    }
  }
  client.destroy();
  for (const b of blocks) if (b.toolUse) b.toolUse.input = JSON.parse(b.toolUse.input || "{}");
  seen.calls = blocks.filter((b) => b.toolUse).map(({toolUse: c}) => ({id: c.toolUseId, name: c.name, args: c.input}));
  return {...seen, said: blocks};
}

/** packages are where the clients come from, by the first part of a fake's name. */
const packages = {anthropic: "@anthropic-ai/sdk", gemini: "@google/genai", ollama: "ollama", bedrock: "@aws-sdk/client-bedrock-runtime"};

/** packageOf names the package that the reader of a fake needs. */
export const packageOf = (name) => packages[name.split("-")[0]] ?? "openai";

/** readers are the clients by the fake they read. */
export const readers = {
  anthropic,
  "anthropic-budget": (at, back, retries) => anthropic(at, back, retries, {type: "enabled", budget_tokens: 2048}),
  chat: openaiChat, openrouter, azure, "azure-dated": azure,
  responses, gemini, "gemini-budget": gemini, ollama, bedrock, "bedrock-signed": bedrock,
};
