// Judge: results graded by hand and kept as qrels, and how good all judged questions are answered, the worst first.

import { html, useMemo, useState } from "./vendor/htm-preact.js";
import { ask, useAnswer } from "./api.js";
import { Busy, Problem, Text, To, documentState, number, save } from "./parts.js";
import { Settings, carried, searchRequest } from "./settings.js";

const GRADES = [[0, "no"], [1, "related"], [2, "good"], [3, "best"]];
const DEPTH = 100;
const CUT = 10;

/** Grades of this browser: question, then document, then grade. They stay here until they are forgotten. */
const place = (collection) => `cento.judged.${collection}`;
const stored = (collection) => {
  try {
    return JSON.parse(localStorage.getItem(place(collection))) ?? {};
  } catch {
    return {};
  }
};

export function Judge({ state, collections, collection, again }) {
  const [judged, set] = useState(() => stored(collection));
  const keep = (change) =>
    set((before) => {
      const next = change(before);
      localStorage.setItem(place(collection), JSON.stringify(next));
      return next;
    });
  const request = { ...searchRequest(state), k: 50 };
  const asked = useAnswer(state.q && `${collection}${again}${JSON.stringify(request)}`, (signal) => ask("/v1/search", request, { signal, collection }));
  const documents = useMemo(() => {
    const seen = new Set();
    return (asked.answer?.data.hits ?? []).filter(({ document }) => !seen.has(document) && seen.add(document)).slice(0, CUT);
  }, [asked.answer]);
  const grade = (document, value) => keep((before) => ({ ...before, [state.q]: { ...before[state.q], [document]: value } }));
  return html`
    <${Settings} state=${state} collections=${collections} fields=${["mode", "fusion", "filter"]} button="Find" />
    <${Busy} on=${asked.busy} /><${Problem} error=${asked.error} again=${asked.again} />
    ${state.q && documents.length > 0 && html`<section aria-labelledby="grade-title"><h2 id="grade-title">Does it answer? <small>the ${documents.length} best documents</small></h2>
      <ol class="graded">${documents.map((hit) => html`<li><fieldset><legend><${To} state=${documentState(state, { ...hit, chunks: [hit.id] })}><${Text}>${hit.title || hit.document}</></></legend>
        <p class="passage small"><${Text}>${hit.text}</></p>
        <div class="grades">${GRADES.map(([value, word]) => html`<label><input type="radio" name=${`grade ${hit.document}`} value=${value} checked=${judged[state.q]?.[hit.document] === value}
          onChange=${() => grade(hit.document, value)} /> ${value} ${word}</label>`)}</div></fieldset></li>`)}</ol></section>`}
    <${Kept} judged=${judged} keep=${keep} />
    <${Board} judged=${judged} state=${state} collection=${collection} />`;
}

/** Numbers of questions, in the order in which they were judged. */
const ids = (judged) => new Map(Object.keys(judged).map((query, n) => [query, String(n + 1)]));

function Kept({ judged, keep }) {
  const [told, tell] = useState("");
  const names = ids(judged);
  const qrels = () => Object.entries(judged).flatMap(([query, grades]) => Object.entries(grades).map(([document, grade]) => `${names.get(query)} 0 ${document} ${grade}\n`)).join("");
  const topics = () => [...names].map(([text, _id]) => JSON.stringify({ _id, text }) + "\n").join("");
  const load = async (event) => {
    const files = [...event.target.files];
    try {
      const read = merged(await Promise.all(files.map((file) => file.text())));
      keep((before) => ({ ...before, ...read }));
      tell("");
    } catch (error) {
      tell(error.message);
    }
    event.target.value = "";
  };
  return html`<section aria-labelledby="kept-title"><h2 id="kept-title">Kept judgements <small>${number(names.size)} questions, in this browser alone</small></h2>
    <div class="tools">
      <button type="button" disabled=${!names.size} onClick=${() => save("qrels.txt", qrels())}>Save qrels.txt</button>
      <button type="button" disabled=${!names.size} onClick=${() => save("queries.jsonl", topics(), "application/jsonl")}>Save queries.jsonl</button>
      <label class="file-choice">Read queries.jsonl and qrels, both at once <input type="file" multiple onChange=${load} /></label>
      <button type="button" disabled=${!names.size} onClick=${() => confirm(`Forget the judgements of ${names.size} questions?`) && keep(() => ({}))}>Forget them</button></div>
    ${told && html`<p class="wrong" role="alert">${told}</p>`}
    <p class="small">With the two files: <code>cento run --topics queries.jsonl --output run.txt</code> and <code>cento eval qrels.txt run.txt</code> give the same figures.</p></section>`;
}

/** Questions and grades of two files: lines of JSON with `_id` and `text`, and qrels of TREC (4 columns) or BEIR (3). */
export function merged(texts) {
  const isQueries = (text) => text.trimStart().startsWith("{");
  const [queries, qrels] = [texts.find(isQueries), texts.find((text) => !isQueries(text))];
  if (queries === undefined || qrels === undefined) throw new Error("Choose two files at once: the questions as JSONL, and their qrels.");
  const asked = new Map(queries.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line)).map(({ _id, text }) => [String(_id), text]));
  const found = {};
  for (const line of qrels.split("\n")) {
    const columns = line.trim().split(/\s+/);
    const [query, document, grade] = columns.length === 4 ? [columns[0], columns[2], columns[3]] : columns;
    if (columns.length < 3 || !/^-?\d+$/.test(grade)) continue; // a heading, or blank
    if (asked.has(query)) (found[asked.get(query)] ??= {})[document] = Number(grade);
  }
  if (!Object.keys(found).length) throw new Error("No line of the qrels is of one of these questions.");
  return found;
}

/** Figures of a ranking, as trec_eval has them: nDCG with linear gains, recall of what has a grade above 0. */
export function figures(ranked, grades) {
  const gain = (document) => Math.max(0, grades[document] ?? 0);
  const dcg = (gains) => gains.slice(0, CUT).reduce((sum, gain, n) => sum + gain / Math.log2(n + 2), 0);
  const ideal = Object.values(grades).filter((grade) => grade > 0).sort((one, other) => other - one);
  const found = ranked.slice(0, CUT).filter((document) => gain(document) > 0).length;
  return { ndcg: ideal.length ? dcg(ranked.map(gain)) / dcg(ideal) : 0, recall: ideal.length ? found / ideal.length : 0, first: ranked.findIndex((document) => gain(document) > 0) + 1 };
}

/** All judged questions asked with the settings of the form. */
function Board({ judged, state, collection }) {
  const [wanted, want] = useState();
  const names = ids(judged);
  const { query, k, ...settings } = searchRequest(state);
  const now = JSON.stringify({ settings, judged });
  const asked = useAnswer(wanted === now && names.size && `${collection}${now}`, (signal) => {
    const queries = [...names].map(([query, id]) => ({ id, query }));
    return ask("/v1/search/batch", { queries, search: { ...settings, k: DEPTH } }, { signal, collection, accept: "text/plain" });
  });
  if (!names.size) return html`<p class="hint">Ask a question and grade its results; what is judged can then be measured under any setting, and saved as qrels.</p>`;
  const rows = wanted === now && asked.answer ? measured(asked.answer.data, judged, names) : [];
  const mean = (name) => rows.reduce((sum, row) => sum + row[name], 0) / rows.length;
  return html`<section aria-labelledby="board-title"><h2 id="board-title">All judged questions</h2>
    <button type="button" class="main" onClick=${() => want(now)}>Measure these settings</button>
    <${Busy} on=${asked.busy} /><${Problem} error=${asked.error} again=${asked.again} />
    ${rows.length > 0 && html`<p data-test="mean"><strong>nDCG@${CUT} ${number(mean("ndcg"))}</strong>, recall@${CUT} ${number(mean("recall"))}, over ${number(rows.length)} questions, the worst first:</p>
      <div class="wide" tabindex="0" role="region" aria-label="Questions"><table><thead><tr><th scope="col">question</th><th scope="col">nDCG@${CUT}</th><th scope="col">recall@${CUT}</th><th scope="col">first at</th><th scope="col">look</th></tr></thead>
        <tbody>${rows.map((row) => html`<tr><th scope="row"><${Text}>${row.query}</></th><td>${number(row.ndcg)}</td><td>${number(row.recall)}</td><td>${row.first || "–"}</td>
          <td><${To} state=${{ ...carried(state), q: row.query, view: "compare" }}>A | B</></td></tr>`)}</tbody></table></div>`}</section>`;
}

function measured(run, judged, names) {
  const ranked = new Map();
  for (const line of run.split("\n").filter(Boolean)) {
    const columns = line.split(" ");
    const id = columns[0];
    if (!ranked.has(id)) ranked.set(id, []);
    ranked.get(id).push(columns.slice(2, -3).join(" ")); // ids of documents may have blanks
  }
  const rows = [...names].map(([query, id]) => ({ query, ...figures(ranked.get(id) ?? [], judged[query]) }));
  return rows.sort((one, other) => one.ndcg - other.ndcg || (one.query < other.query ? -1 : 1));
}
