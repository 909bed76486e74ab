// The board: systems against judgements, question by question, and recall against tokens.

import { html, useMemo } from "./vendor/htm-preact.js";
import { column } from "./files.js";
import { Choice, Long, Part, Table, Text, To, Warnings, number } from "./parts.js";
import { carried } from "./settings.js";
import { go } from "./state.js";

/** Colours of lines, as `s0` to `s5` have them. */
const COLOURS = ["deep", "dense", "lexical", "named", "soft", "rerank"];

/** Figures of a question, by name: the cut of its ranking, and what is measured of it. */
const MEASURES = {
  "nDCG@10": [10, "ndcg"], "RR@10": [10, "reciprocal"], "R@10": [10, "recall"], "R@100": [100, "recall"], recall: [Infinity, "recall"],
};

/** Judgements of a question: grades by ids as a run has them, else as they stand; the best grades. */
const judgements = (id, grades) => ({
  id, known: new Map([...grades, ...[...grades].map(([document, grade]) => [column(document), grade])]),
  ideal: [...grades.values()].filter((grade) => grade > 0).sort((one, other) => other - one),
});

/** A figure as trec_eval has it: gains are grades above 0. */
function figure(documents = [], { known, ideal }, measure) {
  const [cut, what] = MEASURES[measure];
  const gains = documents.slice(0, cut).map((document) => Math.max(0, known.get(document) ?? 0));
  if (!ideal.length) return 0;
  if (what === "recall") return gains.filter(Boolean).length / ideal.length;
  const first = gains.findIndex(Boolean) + 1;
  if (what === "reciprocal") return first && 1 / first;
  const dcg = (gains) => gains.reduce((sum, gain, n) => sum + gain / Math.log2(n + 2), 0);
  return dcg(gains) / dcg(ideal.slice(0, cut));
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

export function Board({ systems, qrels, queries, state }) {
  const measure = state.m in MEASURES ? state.m : systems.every(({ budget }) => budget) ? "recall" : "nDCG@10";
  const judged = useMemo(() => [...qrels].map(([id, grades]) => judgements(id, grades)), [qrels]);
  const rows = useMemo(() => systems.map((system) => {
    const of = (id) => system.answers.get(id);
    const by = (measure) => new Map(judged.map((one) => [one.id, figure(of(one.id)?.documents, one, measure)]));
    return {
      ...system, worth: by(measure), recall: system.budget && by("recall"), tokens: mean(judged.map(({ id }) => of(id)?.tokens ?? 0)),
      without: judged.filter(({ id }) => !of(id)).length, known: judged.some(({ id, known }) => of(id)?.documents.some((document) => known.has(document))),
    };
  }), [systems, judged, measure]);
  if (!qrels.size || !systems.length) return null;
  const pick = (name) => rows.find((row) => row.name === state[name]);
  const a = pick("a") ?? rows[0];
  const b = pick("b") ?? rows.find((row) => row !== a);
  const set = (changes) => go({ ...state, ...changes }, "adjust");
  const names = rows.map(({ name }) => name);
  return html`<${Part} id="board" title=${`${number(qrels.size)} judged questions`}>
    <${Warnings} list=${rows.filter(({ known }) => !known).map(({ name }) => `No document of ${name} is judged for its question: are the judgements of another corpus?`)} />
    <div class="fields"><${Choice} label="Measure" name="m" value=${measure} options=${Object.keys(MEASURES)} onChange=${(m) => set({ m })} />
      <${Choice} label="A" name="a" value=${a.name} options=${names} onChange=${(a) => set({ a })} />
      ${b && html`<${Choice} label="B" name="b" value=${b.name} options=${names} onChange=${(b) => set({ b })} />`}</div>
    <${Table} label="Systems" test="systems" heads=${`system, ${measure}, tokens, without an answer`}
      rows=${rows.map(({ name, worth, tokens, budget, without }) => [html`<${Text}>${name}</>`, html`<span data-figure=${mean([...worth.values()])}>${number(mean([...worth.values()]))}</span>`, budget ? number(Math.round(tokens)) : "–", number(without)])} />
    <${Questions} a=${a} b=${b} queries=${queries} state=${state} measure=${measure} />
    <${Curves} rows=${rows} /></>`;
}

/** Each question: what B loses most against A first, or what one system answers worst. */
function Questions({ a, b, queries, state, measure }) {
  const rows = useMemo(() => {
    const told = [...a.worth].map(([id, of]) => ({ id, of, by: b && b.worth.get(id) - of }));
    return told.sort((one, other) => (b ? one.by - other.by : one.of - other.of) || (one.id < other.id ? -1 : 1));
  }, [a, b]);
  const count = (test) => number(rows.filter(({ by }) => test(by)).length);
  const link = (text) => {
    const ofB = Object.entries(b?.settings ?? {}).map(([name, value]) => [`b_${name}`, value]);
    return { ...carried(state), ...a.settings, ...Object.fromEntries(ofB), view: "compare", q: text, of: a.budget && (!b || b.budget) ? "contexts" : undefined };
  };
  return html`${b && html`<p data-test="wins"><strong>B wins ${count((by) => by > 0)}, loses ${count((by) => by < 0)}, ties ${count((by) => by === 0)}</strong> of ${number(rows.length)} questions against A; what it loses most comes first.</p>`}
    <${Long} items=${rows} row=${54} most=${460} label="Questions">${({ id, of, by }) => html`<div class="judged" data-id=${id}>
      ${queries.has(id) ? html`<${To} state=${link(queries.get(id))} title=${queries.get(id)}><${Text}>${queries.get(id)}</></>` : html`<span>question <${Text}>${id}</>, whose text is in no opened file</span>`}
      <span class="small">${measure} ${b ? html`A ${number(of)}, B ${number(of + by)}: <span class=${by > 0 ? "move up" : by < 0 ? "move down" : ""}>${by > 0 ? "+" : ""}${number(by)}</span>` : number(of)}
        ${queries.has(id) && html` · <${To} state=${{ ...state, q: queries.get(id) }}>judge it</>`}</span></div>`}</>`;
}

/** Recall against tokens, a line for the budgets of each strategy. */
function Curves({ rows }) {
  const lines = new Map();
  for (const row of rows.filter(({ budget }) => budget)) {
    const name = row.name.replace(/, \S+ tokens/, "");
    lines.set(name, [...(lines.get(name) ?? []), row]);
  }
  if (!lines.size) return null;
  const points = [...lines].map(([name, of]) => ({ name, of: of.map((row) => ({ tokens: row.tokens, recall: mean([...row.recall.values()]), budget: row.budget })).sort((one, other) => one.tokens - other.tokens) }));
  const most = Math.max(1, ...points.flatMap(({ of }) => of.map(({ tokens }) => tokens)));
  const [x, y] = [(tokens) => 46 + (tokens / most) * 620, (recall) => 220 - recall * 200];
  return html`<h3>Recall per 1,000 tokens</h3>
    <p class="legend">${points.map(({ name }, n) => html`<span><i class=${`swatch s${n % 6}`}></i><${Text}>${name}</></span>`)}</p>
    <svg class="plot" viewBox="0 0 690 250" role="img" aria-label="Mean recall of documents against mean tokens of contexts, as the table says">
      <path class="axis" d="M46 20V220H666" /><text x="40" y="24" text-anchor="end">1</text><text x="40" y="224" text-anchor="end">0</text><text x="666" y="240" text-anchor="end">${number(Math.round(most))} tokens</text>
      ${points.map(({ of }, n) => html`<g style=${{ color: `var(--${COLOURS[n % 6]})` }}><path class="line" d=${of.map(({ tokens, recall }, n) => `${n ? "L" : "M"}${x(tokens)} ${y(recall)}`).join("")} />
        ${of.map(({ tokens, recall }) => html`<circle cx=${x(tokens)} cy=${y(recall)} r="3.5" />`)}</g>`)}</svg>
    <${Table} label="Recall per 1,000 tokens" test="curve" heads="contexts, budget, tokens, recall, recall per 1,000 tokens"
      rows=${points.flatMap(({ name, of }) => of.map(({ budget, tokens, recall }) => [html`<${Text}>${name}</>`, budget > 0 ? number(budget) : budget, number(Math.round(tokens)), number(recall), tokens ? number((1000 * recall) / tokens) : "–"]))} />`;
}
