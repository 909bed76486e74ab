// Files of an evaluation, read here and sent nowhere. Ids are texts throughout.

import { bytes } from "./parts.js";

/** Bytes of a file that is read. */
const BYTES_MAX = 2 ** 28;

/** Keys of an id and of a text in lines of JSON; the first that is there counts. */
const IDS = ["_id", "id", "qid", "query_id"];
const TEXTS = ["text", "query", "question", "title"];

/** An id as `cento run` writes it: blanks are percent-encoded, and a `%` that would read as a code. */
export const column = (id) => id.replace(/\p{White_Space}|%(?=[0-9a-f]{2})/giu, (sign) => encodeURIComponent(sign));

/** What a file is: `{ kind, … }`, or an error that names the line. */
export async function read(file) {
  if (file.size > BYTES_MAX) throw new Error(`${file.name} has ${bytes(file.size)}; ${bytes(BYTES_MAX)} are read`);
  const raw = await file.arrayBuffer();
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(raw);
  } catch {
    throw new Error(`${file.name} is not UTF-8`);
  }
  try {
    return { name: file.name, ...parsed(text) };
  } catch (error) {
    throw new Error(`${file.name}, ${error.message}`);
  }
}

/** What a text is; its first line tells. */
export function parsed(text) {
  const lines = text.split("\n").map((line, n) => ({ line: line.replace(/\r$/, ""), n: n + 1 })).filter(({ line }) => line.trim());
  if (!lines.length) throw new Error("which is empty");
  const first = lines[0].line;
  if (first.trimStart().startsWith("{")) return "citations" in object(lines[0]) ? contexts(lines) : queries(lines);
  const words = columns(first);
  const isText = first.split("\t").length === 2 && (words.length === 2 || first.split("\t")[1].includes(" ")); // a question has blanks
  if (isText) return queries(lines);
  const isHeader = words.join(" ").toLowerCase() === "query-id corpus-id score";
  if (isHeader || words.length === 4) return qrels(lines, isHeader);
  return run(lines, words.length === 3);
}

const columns = (line) => line.trim().split(/[ \t\f]+/);
const wrong = (n, expected) => new Error(`line ${n}: expected ${expected}`);

/** A line of JSON; an id that is a number stays as it is written, all its digits. */
function object({ line, n }) {
  const keep = (name, value, context) => (typeof value === "number" && IDS.includes(name) ? (context?.source ?? String(value)) : value);
  try {
    return JSON.parse(line, keep);
  } catch (error) {
    throw wrong(n, `a JSON object (${error.message})`);
  }
}

function queries(lines) {
  const found = new Map();
  const ofJson = lines[0].line.trimStart().startsWith("{");
  for (const at of lines) {
    const tab = at.line.indexOf("\t");
    const record = ofJson ? object(at) : { id: at.line.slice(0, tab), text: at.line.slice(tab + 1) };
    const [id, text] = [IDS, TEXTS].map((names) => record[names.find((name) => record[name] !== undefined)]);
    if ((!ofJson && tab < 0) || typeof id !== "string" || !id || typeof text !== "string" || !text.trim()) throw wrong(at.n, "the id and the text of a question");
    if (found.has(id)) throw wrong(at.n, `each question once, not ${id} again`);
    found.set(id, text);
  }
  return { kind: "queries", queries: found };
}

/** The map of a key, made where there is none. */
export const within = (map, key) => map.get(key) ?? map.set(key, new Map()).get(key);

function qrels(lines, isBeir) {
  const found = new Map();
  for (const { line, n } of isBeir ? lines.slice(1) : lines) {
    const words = isBeir ? line.split("\t").map((word) => word.trim()) : columns(line);
    const [query, document, grade] = isBeir ? words : [words[0], words[2], words[3]];
    if (words.length !== (isBeir ? 3 : 4) || !query || !document || !/^-?\d+(\.0+)?$/.test(grade)) throw wrong(n, isBeir ? "query, document and grade with tabs between" : "`query iter document grade`, the grade a whole number");
    const grades = within(found, query);
    if (grades.has(document)) throw wrong(n, `each document once a question, not ${document} again`);
    grades.set(document, Number(grade));
  }
  return { kind: "qrels", qrels: found };
}

/** The order of ids by their bytes, in which UTF-16 puts surrogates elsewhere. */
function byBytes(one, other) {
  const rank = (unit) => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit);
  for (let n = 0; n < one.length && n < other.length; n++)
    if (one[n] !== other[n]) return rank(one.charCodeAt(n)) - rank(other.charCodeAt(n));
  return one.length - other.length;
}

/** A run in the order of trec_eval: by 32-bit score, then by id, descending. */
function run(lines, isMsMarco) {
  const scores = new Map();
  for (const { line, n } of lines) {
    const words = columns(line);
    const [query, document, score] = isMsMarco ? [words[0], words[1], -words[2]] : [words[0], words[2], words[4] === undefined ? NaN : Number(words[4])];
    if (words.length !== (isMsMarco ? 3 : 6) || !Number.isFinite(score)) throw wrong(n, isMsMarco ? "`query document rank`" : "`query Q0 document rank score tag`, or another file of an evaluation");
    const of = within(scores, query);
    if (of.has(document)) throw wrong(n, `each document once a question, not ${document} again`);
    of.set(document, Math.fround(score));
  }
  const ranked = (of) => ({ documents: [...of].sort((one, other) => other[1] - one[1] || byBytes(other[0], one[0])).map(([document]) => document) });
  return { kind: "run", systems: [{ name: "", answers: new Map([...scores].map(([query, of]) => [query, ranked(of)])) }] };
}

/** Contexts, a system for each strategy and budget. */
function contexts(lines) {
  const [systems, asked] = [new Map(), new Map()];
  for (const at of lines) {
    const { version, query_id: id, query, strategy, budget_tokens, budget = budget_tokens, n_tokens: tokens, documents } = object(at);
    if (version !== 1 || typeof id !== "string" || typeof query !== "string" || !Number.isFinite(tokens) || !Array.isArray(documents)) throw wrong(at.n, "a context as `cento run --contexts` writes it, version 1");
    const name = `${strategy}, ${budget} tokens`;
    const system = systems.get(name) ?? systems.set(name, { name, budget, settings: { strategy, budget: String(budget) }, answers: new Map() }).get(name);
    if (system.answers.has(id)) throw wrong(at.n, `each context once, not that of ${id}, ${name}, again`);
    system.answers.set(id, { documents: documents.map((document) => column(String(document))), tokens });
    asked.set(id, query);
  }
  return { kind: "contexts", queries: asked, systems: [...systems.values()] };
}
