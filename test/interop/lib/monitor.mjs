// A monitor watches one connection, both directions, and notes whatever an ACP
// agent may not do. Every test runs under one.

// Updates that belong to a turn or to a replay.
const OF_A_TURN = new Set(["user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"]);
const FINAL = new Set(["completed", "failed"]);

export class Monitor {
  frames = 0; // sent by the agent
  faults = [];
  #judge;
  #asked = new Map(); // id -> {method, params} of the client's open requests
  #answered = new Set();
  #agentIds = new Set();
  #sessions = new Set();
  #calls = new Map(); // session -> open tool calls

  constructor(judge) {
    this.#judge = judge;
  }

  /** client takes one message that the client sent. */
  client(msg) {
    if (msg?.method === undefined || msg.id === undefined) return;
    this.#asked.set(JSON.stringify(msg.id), {method: msg.method, params: msg.params});
    const opens = ["session/load", "session/resume"].includes(msg.method);
    if (opens && typeof msg.params?.sessionId === "string") this.#sessions.add(msg.params.sessionId);
  }

  /** agent takes one line that the agent sent. */
  agent(line) {
    this.frames++;
    let msg;
    try {
      msg = JSON.parse(line);
    } catch {
      this.#fault(`not JSON: ${line.slice(0, 120)}`);
      return;
    }
    if (msg === null || typeof msg !== "object" || Array.isArray(msg)) return this.#fault(`not an object: ${line.slice(0, 120)}`);
    if (msg.jsonrpc !== "2.0") this.#fault(`no "jsonrpc": "2.0": ${line.slice(0, 120)}`);
    const extra = Object.keys(msg).filter((k) => !["jsonrpc", "id", "method", "params", "result", "error"].includes(k));
    if (extra.length > 0) this.#fault(`envelope has ${extra}`);
    if (typeof msg.method === "string") this.#fromAgent(msg);
    else this.#response(msg);
  }

  /** end is called when the agent's output has ended. */
  end() {
    for (const [id, {method}] of this.#asked) this.#fault(`request ${id} ${method} has no answer`);
  }

  #fault(text) {
    this.faults.push(text);
  }

  #fromAgent(msg) {
    if (!this.#judge.knows(msg.method) && !/^(_|\$\/)/.test(msg.method)) this.#fault(`${msg.method} is no method of the protocol`);
    this.faults.push(...this.#judge.faults(msg.method, "params", msg.params));
    if (msg.id !== undefined) {
      const id = JSON.stringify(msg.id);
      if (this.#agentIds.has(id)) this.#fault(`the agent used id ${id} twice`);
      this.#agentIds.add(id);
    }
    const session = msg.params?.sessionId;
    if (msg.method.startsWith("session/") && !this.#sessions.has(session)) {
      this.#fault(`${msg.method} for session ${session}, which the client has not been told of`);
    }
    if (msg.method === "session/update") this.#update(session, msg.params.update ?? {});
  }

  #update(session, update) {
    const kind = update.sessionUpdate;
    if (OF_A_TURN.has(kind) && !this.#busy(session)) this.#fault(`${kind} outside a turn of ${session}`);
    if (kind !== "tool_call" && kind !== "tool_call_update") return;
    const open = this.#calls.get(session) ?? new Map();
    this.#calls.set(session, open);
    if (kind === "tool_call_update" && !open.has(update.toolCallId)) this.#fault(`tool_call_update for ${update.toolCallId}, which was not announced`);
    if (kind === "tool_call" && open.has(update.toolCallId)) this.#fault(`tool call ${update.toolCallId} announced twice`);
    const was = open.get(update.toolCallId);
    if (FINAL.has(was) && update.status !== undefined && update.status !== was) this.#fault(`tool call ${update.toolCallId} was ${was} and is now ${update.status}`);
    open.set(update.toolCallId, update.status ?? was ?? "pending");
  }

  // #busy reports whether a turn or a replay of the session is going on.
  #busy(session) {
    return [...this.#asked.values()].some(
      ({method, params}) => ["session/prompt", "session/load"].includes(method) && params?.sessionId === session,
    );
  }

  #response(msg) {
    const id = JSON.stringify(msg.id);
    const request = this.#asked.get(id);
    if (!request) {
      if (this.#answered.has(id)) this.#fault(`request ${id} was answered twice`);
      else if (msg.id !== null) this.#fault(`answer to ${id}, which was not asked`);
      return;
    }
    this.#asked.delete(id);
    this.#answered.add(id);
    if ("result" in msg === "error" in msg) this.#fault(`the answer to ${request.method} needs a result or an error`);
    if ("error" in msg) this.#error(request.method, msg.error);
    else this.#result(request, msg.result);
  }

  #error(method, error) {
    if (!Number.isInteger(error?.code) || typeof error?.message !== "string") this.#fault(`the error of ${method} has no code or no message`);
    if (typeof error?.data?.reason !== "string") this.#fault(`the error of ${method} gives no data.reason: ${JSON.stringify(error)}`);
  }

  #result({method, params}, result) {
    this.faults.push(...this.#judge.faults(method, "result", result));
    if (method === "session/new" && typeof result?.sessionId === "string") this.#sessions.add(result.sessionId);
    if (method !== "session/prompt" && method !== "session/load") return;
    for (const [call, status] of this.#calls.get(params.sessionId) ?? []) {
      if (!FINAL.has(status)) this.#fault(`tool call ${call} is ${status} after the answer to ${method}`);
    }
    // Ids of calls are unique in the session, but a load announces them again.
    if (method === "session/load") this.#calls.delete(params.sessionId);
  }
}
