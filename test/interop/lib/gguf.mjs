// Writes a language model that is small enough to make while one waits: a
// byte-level bigram model in the GGUF format, as a Llama of one block that
// changes nothing. The embedding of a token is one-hot, so the output matrix
// is a table: the logarithm of how often a byte follows another in a text.
import {writeFileSync} from "node:fs";

const bytes = 256;
const special = 3; // <unk>, <s>, </s>
const vocabulary = special + bytes;
const width = 288; // the vocabulary, rounded up to whole heads
const heads = 9;
const inner = 32; // of the feed-forward layer, which is all zeros
const alignment = 32;

/** Types of metadata values in GGUF. */
const U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STRING = 8, ARRAY = 9;

class Buffers {
  parts = [];
  length = 0;
  push(buffer) { this.parts.push(buffer); this.length += buffer.length; }
  number(size, write) { const b = Buffer.alloc(size); write(b); this.push(b); }
  u32(n) { this.number(4, (b) => b.writeUInt32LE(n)); }
  u64(n) { this.number(8, (b) => b.writeBigUInt64LE(BigInt(n))); }
  string(s) { const b = Buffer.from(s); this.u64(b.length); this.push(b); }
  value(type, v) {
    switch (type) {
      case U32: return this.u32(v);
      case I32: return this.number(4, (b) => b.writeInt32LE(v));
      case F32: return this.number(4, (b) => b.writeFloatLE(v));
      case BOOL: return this.number(1, (b) => b.writeUInt8(v ? 1 : 0));
      case STRING: return this.string(v);
    }
    throw new Error(`no value of type ${type}`);
  }
  pad() { this.push(Buffer.alloc((alignment - (this.length % alignment)) % alignment)); }
  all() { return Buffer.concat(this.parts); }
}

/** follows counts the pairs of a text and returns their logarithms, smoothed. */
function follows(text) {
  const counts = Array.from({length: bytes}, () => new Float64Array(bytes).fill(0.001));
  for (let i = 0; i + 1 < text.length; i++) counts[text[i]][text[i + 1]]++;
  return counts.map((row) => {
    const sum = row.reduce((a, b) => a + b, 0);
    return row.map((n) => Math.log(n / sum));
  });
}

function matrix(columns, rows, fill) {
  const m = new Float32Array(columns * rows);
  if (fill) fill((row, column, v) => { m[row * columns + column] = v; });
  return {shape: [columns, rows], data: m};
}

const vector = (n, v) => ({shape: [n], data: new Float32Array(n).fill(v)});

function tensors(text) {
  const table = follows(text);
  // Normalising a one-hot vector makes it this much longer.
  const gain = Math.sqrt(width);
  const square = () => matrix(width, width);
  return {
    "token_embd.weight": matrix(width, vocabulary, (set) => { for (let t = 0; t < vocabulary; t++) set(t, t, 1); }),
    "blk.0.attn_norm.weight": vector(width, 1),
    "blk.0.attn_q.weight": square(), "blk.0.attn_k.weight": square(), "blk.0.attn_v.weight": square(), "blk.0.attn_output.weight": square(),
    "blk.0.ffn_norm.weight": vector(width, 1),
    "blk.0.ffn_gate.weight": matrix(width, inner), "blk.0.ffn_up.weight": matrix(width, inner), "blk.0.ffn_down.weight": matrix(inner, width),
    "output_norm.weight": vector(width, 1),
    "output.weight": matrix(width, vocabulary, (set) => {
      for (let next = 0; next < vocabulary; next++) {
        for (let t = 0; t < vocabulary; t++) {
          const known = t >= special && next >= special;
          set(next, t, (known ? table[t - special][next - special] : next >= special ? -5.5 : -100) / gain);
        }
      }
    }),
  };
}

/** writeModel makes the model of a text, given as bytes. */
export function writeModel(path, text) {
  const tokens = ["<unk>", "<s>", "</s>"];
  for (let i = 0; i < bytes; i++) tokens.push(`<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`);
  const meta = [
    ["general.architecture", STRING, "llama"], ["general.name", STRING, "bigrams"], ["general.alignment", U32, alignment],
    ["llama.context_length", U32, 8192], ["llama.embedding_length", U32, width], ["llama.block_count", U32, 1],
    ["llama.feed_forward_length", U32, inner], ["llama.attention.head_count", U32, heads],
    ["llama.attention.layer_norm_rms_epsilon", F32, 1e-6], ["llama.rope.dimension_count", U32, width / heads], ["llama.vocab_size", U32, vocabulary],
    ["tokenizer.ggml.model", STRING, "llama"],
    ["tokenizer.ggml.tokens", ARRAY, STRING, tokens],
    ["tokenizer.ggml.scores", ARRAY, F32, tokens.map(() => 0)],
    ["tokenizer.ggml.token_type", ARRAY, I32, tokens.map((_, i) => (i === 0 ? 2 : i < special ? 3 : 6))],
    ["tokenizer.ggml.bos_token_id", U32, 1], ["tokenizer.ggml.eos_token_id", U32, 2], ["tokenizer.ggml.unknown_token_id", U32, 0],
    ["tokenizer.ggml.add_bos_token", BOOL, true], ["tokenizer.ggml.add_space_prefix", BOOL, false],
  ];
  const all = Object.entries(tensors(text));
  const out = new Buffers();
  out.push(Buffer.from("GGUF"));
  out.u32(3);
  out.u64(all.length);
  out.u64(meta.length);
  for (const [key, type, ...rest] of meta) {
    out.string(key);
    out.u32(type);
    if (type !== ARRAY) { out.value(type, rest[0]); continue; }
    out.u32(rest[0]);
    out.u64(rest[1].length);
    for (const v of rest[1]) out.value(rest[0], v);
  }
  const data = new Buffers();
  for (const [name, {shape, data: floats}] of all) {
    out.string(name);
    out.u32(shape.length);
    for (const n of shape) out.u64(n);
    out.u32(0); // 32-bit floats
    out.u64(data.length);
    data.push(Buffer.from(floats.buffer));
    data.pad();
  }
  out.pad();
  writeFileSync(path, Buffer.concat([out.all(), data.all()]));
}
