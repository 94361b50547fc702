// llama.cpp behind an OpenAI-compatible address, with a model that is made on
// the spot. What it says is babble, but it is said by a real engine.
import {createServer} from "node:http";
import {mkdtempSync, readFileSync, rmSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {pathToFileURL} from "node:url";
import {writeModel} from "./gguf.mjs";

/** missing says why the engine cannot run here, undefined when it can. */
export function missing() {
  try {
    resolve();
  } catch {
    return "llama.cpp is not installed: npm ci --ignore-scripts --omit=optional in test/interop/engine";
  }
}

const resolve = () => createRequire(new URL("../engine/package.json", import.meta.url)).resolve("node-llama-cpp");

/** serveEngine starts the engine and returns {url, open}, where open() counts the answers under way. */
export async function serveEngine(t) {
  const {getLlama, LlamaCompletion, LlamaLogLevel} = await import(pathToFileURL(resolve()));
  const dir = mkdtempSync(join(tmpdir(), "berth-engine-"));
  const path = join(dir, "bigrams.gguf");
  writeModel(path, readFileSync(new URL("../../../README.md", import.meta.url)));
  const llama = await getLlama({gpu: false, build: "never", skipDownload: true, logLevel: LlamaLogLevel.error, logger: () => {}});
  const model = await llama.loadModel({modelPath: path});
  const context = await model.createContext({contextSize: 8192, threads: 1});
  const engine = new LlamaCompletion({contextSequence: context.getSequence()});
  let open = 0;

  async function complete(body, res) {
    const aborted = new AbortController();
    res.on("close", () => aborted.abort());
    const say = (o) => res.write(`data: ${JSON.stringify({id: "engine", object: "chat.completion.chunk", model: body.model, ...o})}\n\n`);
    const delta = (delta, finish_reason = null) => say({choices: [{index: 0, delta, finish_reason}]});
    res.writeHead(200, {"content-type": "text/event-stream"});
    const last = body.messages.findLast((m) => m.role === "user").content;
    const prompt = model.tokenize(typeof last === "string" ? last : last.map((p) => p.text ?? "").join(" "));
    let said = 0;
    const {metadata} = await engine.generateCompletionWithMeta(prompt, {
      maxTokens: body.max_tokens ?? 4000, temperature: 0.7, seed: 7, signal: aborted.signal, stopOnAbortSignal: true,
      customStopTriggers: body.messages.some((m) => m.role === "user" && JSON.stringify(m.content).includes("for ever")) ? [] : ["\n"],
      onTextChunk: (content) => (said++, delta({content})),
    });
    delta({}, metadata.stopReason === "maxTokens" ? "length" : "stop");
    say({choices: [], usage: {prompt_tokens: prompt.length, completion_tokens: said, total_tokens: prompt.length + said}});
    res.end("data: [DONE]\n\n");
  }

  const server = createServer((req, res) => {
    let text = "";
    req.on("data", (s) => (text += s)).on("end", async () => {
      if (req.url === "/v1/models") return res.end(JSON.stringify({object: "list", data: [{id: "bigrams", object: "model"}]}));
      open++;
      await complete(JSON.parse(text), res).catch((e) => res.destroy(e)).finally(() => open--);
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await llama.dispose();
    rmSync(dir, {recursive: true});
  });
  return {url: `http://127.0.0.1:${server.address().port}/v1`, open: () => open};
}
