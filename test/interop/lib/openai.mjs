// A small endpoint with the OpenAI-compatible wire that plays replies given as
// raw pieces of a stream, so that a test decides where the bytes are cut.
import {createServer} from "node:http";
import {once} from "node:events";

/** event is one server-sent event with a chat completion chunk. */
export function event(delta, finish = null, extra = {}) {
  const chunk = {id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{index: 0, delta, finish_reason: finish}], ...extra};
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

export const done = "data: [DONE]\n\n";

/** cut splits text into pieces of n bytes, wherever that falls. */
export function cut(text, n) {
  const bytes = Buffer.from(text);
  return Array.from({length: Math.ceil(bytes.length / n)}, (_, i) => bytes.subarray(i * n, (i + 1) * n));
}

/**
 * serve starts the endpoint. replies is a list, one for each request in order,
 * of functions from the request's body to an array of pieces or to
 * {status, body}. The requests seen are in the result.
 */
export async function serve(t, replies) {
  const requests = [];
  const server = createServer(async (req, res) => {
    let body = "";
    for await (const piece of req.setEncoding("utf8")) body += piece;
    const request = {url: req.url, headers: req.headers, body: JSON.parse(body)};
    requests.push(request);
    const reply = replies[requests.length - 1]?.(request.body);
    if (!reply || reply.status) {
      res.writeHead(reply?.status ?? 500, {"content-type": "application/json", ...reply?.headers});
      res.end(JSON.stringify(reply?.body ?? {error: {message: "no reply left", type: "server_error"}}));
      return;
    }
    res.writeHead(200, {"content-type": "text/event-stream"});
    for (const piece of reply) {
      // Written and flushed alone, so that the cut arrives as a cut.
      if (!res.write(piece)) await once(res, "drain");
      await new Promise((go) => setImmediate(go));
    }
    res.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {url: `http://127.0.0.1:${server.address().port}/v1`, requests};
}
