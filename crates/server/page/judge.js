// Judge: results graded by hand and kept as qrels; runs and contexts of files, and of this server, held against all
// judgements. Files are read by the page and go nowhere.

import { html, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { ask, useRoute } from "./api.js";
import { Board } from "./board.js";
import { column, parsed, read, within } from "./files.js";
import { Asked, Busy, Part, Problem, Text, To, documentState, number, save } from "./parts.js";
import { Settings, contextRequest, searchRequest } from "./settings.js";

const GRADES = [[0, "no"], [1, "related"], [2, "good"], [3, "best"]];
const DEPTH = 100;
const CUT = 10;

/** Budgets at which contexts are measured, in tokens. */
const BUDGETS = [250, 500, 1000, 2000, 4000];

/** Grades of this browser, `[question, [[document, grade]]]`, until they are forgotten. */
const place = (collection) => `cento.judged.${collection}`;
const stored = (collection) => {
  try {
    return new Map(JSON.parse(localStorage.getItem(place(collection))).map(([text, grades]) => [text, new Map(grades)]));
  } catch {
    return new Map(); // nothing is kept, or nothing that this version wrote
  }
};

/** Files and measured systems, while the page is open. */
let opened = [];

export function Judge({ state, collections, collection, again }) {
  const [hand, set] = useState(() => stored(collection));
  const [files, put] = useState(opened);
  const keep = (change) =>
    set((before) => {
      const next = change(before);
      localStorage.setItem(place(collection), JSON.stringify([...next].map(([text, grades]) => [text, [...grades]])));
      return next;
    });
  const change = (by) => put((before) => (opened = by(before)));
  const known = useMemo(() => merged(files, hand), [files, hand]);
  const request = { ...searchRequest(state), k: 50 };
  const asked = useRoute("/v1/search", request, { collection, again, wanted: state.q });
  const documents = useMemo(() => {
    const seen = new Set();
    return (asked.answer?.data.hits ?? []).filter(({ document }) => !seen.has(document) && seen.add(document)).slice(0, CUT);
  }, [asked.answer]);
  const grades = known.qrels.get(known.ids.get(state.q));
  const grade = (document, value) => keep((before) => new Map(before).set(state.q, new Map(before.get(state.q)).set(document, value)));
  return html`
    <${Settings} state=${state} collections=${collections} fields=${["mode", "fusion", "filter"]} button="Find" live />
    <${Asked} of=${asked} />
    ${state.q && !asked.busy && documents.length > 0 && html`<${Part} id="grade" title="Does it answer?" note=${`the ${documents.length} best documents`}>
      <ol class="graded">${documents.map((hit) => html`<li key=${hit.document}><fieldset><legend><${To} state=${documentState(state, hit)}><${Text}>${hit.title || hit.document}</></></legend>
        <p class="passage small"><${Text}>${hit.text}</></p>
        <div class="grades">${GRADES.map(([value, word]) => html`<label><input type="radio" name=${`grade ${hit.document}`} value=${value} checked=${(grades?.get(hit.document) ?? grades?.get(column(hit.document))) === value}
          onChange=${() => grade(hit.document, value)} /> ${value} ${word}</label>`)}</div></fieldset></li>`)}</ol></>`}
    <${Files} files=${files} change=${change} />
    <${Kept} hand=${hand} keep=${keep} known=${known} />
    <div><${Measure} known=${known} change=${change} state=${state} collection=${collection} /></div>
    <div><${Board} systems=${known.systems} qrels=${known.qrels} queries=${known.queries} state=${state} /></div>`;
}

/** All files and grades together; each system gets a name of its own. */
function merged(files, hand) {
  const [queries, qrels, systems, names] = [new Map(), new Map(), [], new Set()];
  for (const file of files) {
    for (const [id, text] of file.queries ?? []) queries.set(id, text);
    for (const [id, grades] of file.qrels ?? []) for (const [document, grade] of grades) within(qrels, id).set(document, grade);
    for (const system of file.systems ?? []) {
      const plain = [file.name, system.name].filter(Boolean).join(": ");
      let name = plain;
      for (let n = 2; names.has(name); n++) name = `${plain} (${n})`;
      names.add(name);
      systems.push({ ...system, name });
    }
  }
  const ids = new Map([...queries].map(([id, text]) => [text, id]));
  let next = 1;
  for (const [text, grades] of hand) {
    while (!ids.has(text) && (queries.has(String(next)) || qrels.has(String(next)))) next++;
    const id = ids.get(text) ?? String(next);
    ids.set(text, id);
    queries.set(id, text);
    for (const [document, grade] of grades) {
      const of = within(qrels, id);
      of.set(of.has(column(document)) ? column(document) : document, grade); // what a file says of it is overruled
    }
  }
  return { queries, qrels, systems, ids };
}

const SAID = {
  queries: ({ queries }) => `${number(queries.size)} questions`,
  qrels: ({ qrels }) => `judgements of ${number(qrels.size)} questions`,
  run: ({ systems: [{ answers }] }) => `a run of ${number(answers.size)} questions`,
  contexts: ({ systems, queries }) => `contexts of ${number(queries.size)} questions: ${systems.map(({ name }) => name).join("; ")}`,
};

function Files({ files, change }) {
  const [wrong, tell] = useState([]);
  const load = async ({ target }) => {
    const outcomes = await Promise.allSettled([...target.files].map(read));
    tell(outcomes.filter(({ reason }) => reason).map(({ reason }) => reason.message));
    change((before) => [...before, ...outcomes.filter(({ value }) => value).map(({ value }) => value)]);
    target.value = "";
  };
  return html`<${Part} id="opened" title="Files" note="read here, sent nowhere, forgotten with the page">
    <label class="file-choice">Queries, qrels, runs (TREC, MS MARCO) and contexts of <code>cento run</code>, any number <input type="file" multiple onChange=${load} /></label>
    ${wrong.map((text) => html`<p class="wrong" role="alert"><${Text}>${text}</></p>`)}
    <ul class="opened-files">${files.map((file) => html`<li><strong><${Text}>${file.name}</></strong>: <${Text}>${SAID[file.kind](file)}</> <button type="button" class="small" aria-label=${`Close ${file.name}`} onClick=${() => change((before) => before.filter((one) => one !== file))}>Close</button></li>`)}</ul></>`;
}

function Kept({ hand, keep, known }) {
  const qrels = () => [...known.qrels].flatMap(([id, grades]) => [...grades].map(([document, grade]) => `${id} 0 ${column(document)} ${grade}\n`)).join("");
  const topics = () => [...known.queries].filter(([id]) => known.qrels.has(id)).map(([_id, text]) => `${JSON.stringify({ _id, text })}\n`).join("");
  return html`<${Part} id="kept" title="Judgements" note=${`questions: ${number(known.qrels.size)}; by hand, kept in this browser alone: ${number(hand.size)}`}>
    ${!known.qrels.size && html`<p class="hint">Ask a question and grade its results, or open files: what is judged can then be measured under any setting, and saved as qrels.</p>`}
    <div class="tools">
      <button type="button" data-test="qrels" disabled=${!known.qrels.size} onClick=${() => save("qrels.txt", qrels())}>Save qrels.txt</button>
      <button type="button" data-test="queries" disabled=${!known.qrels.size} onClick=${() => save("queries.jsonl", topics(), "application/jsonl")}>Save queries.jsonl</button>
      <button type="button" disabled=${!hand.size} onClick=${() => confirm(`Forget the judgements of ${hand.size} questions?`) && keep(() => new Map())}>Forget those by hand</button></div>
    <p class="small">With the two files: <code>cento run --topics queries.jsonl --output run.txt</code> and <code>cento eval qrels.txt run.txt</code> give the same figures.</p></>`;
}

/** Asks this server all judged questions whose text is known. */
function Measure({ known, change, state, collection }) {
  const [at, tell] = useState({});
  const stop = useRef();
  const asked = [...known.queries].filter(([id]) => known.qrels.has(id)).map(([id, query]) => ({ id, query }));
  const { query: _, budget, ...settings } = contextRequest(state);
  const told = Object.entries(settings).map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(", ");
  const add = (kind, systems) => change((before) => [...before, { name: `now${told && `, ${told}`}`, kind, systems, queries: new Map(asked.map(({ id, query }) => [id, query])) }]);
  const work = (make) => async () => {
    stop.current = new AbortController();
    tell({ busy: "Asking …" });
    try {
      await make({ signal: stop.current.signal, collection });
      tell({});
    } catch (error) {
      tell(error.name === "AbortError" ? {} : { error });
    }
  };
  const rank = work(async (how) => {
    const { query, k, ...search } = searchRequest(state);
    const { data } = await ask("/v1/search/batch", { queries: asked, search: { ...search, k: DEPTH } }, { ...how, accept: "text/plain" });
    add("run", data.trim() ? parsed(data).systems.map((system) => ({ ...system, settings: {} })) : [{ name: "", answers: new Map(), settings: {} }]);
  });
  const assemble = work(async (how) => {
    const systems = BUDGETS.map((budget) => ({ name: `${settings.strategy ?? "cento"}, ${budget} tokens`, budget, settings: { budget: String(budget) }, answers: new Map() }));
    for (const [n, { id, query }] of asked.entries())
      for (const { budget, answers } of systems) {
        tell({ busy: `Assembling for question ${n + 1} of ${asked.length}, ${budget} tokens …` });
        const { data } = await ask("/v1/context", { ...settings, query, budget }, how);
        answers.set(id, { documents: [...new Set(data.citations.map(({ document }) => column(document)))], tokens: data.n_tokens });
      }
    add("contexts", systems);
  });
  if (!asked.length) return null;
  return html`<${Part} id="measure" title="Measure this server" note=${`${number(asked.length)} of ${number(known.qrels.size)} judged questions, with the settings above`}>
    <div class="tools"><button type="button" class="main" disabled=${at.busy} onClick=${rank}>Measure the ranking</button>
      <button type="button" disabled=${at.busy} onClick=${assemble}>Measure contexts of ${BUDGETS[0]} to ${number(BUDGETS.at(-1))} tokens</button>
      ${at.busy && html`<button type="button" onClick=${() => stop.current.abort()}>Stop</button>`}</div>
    <${Busy} on=${at.busy}>${at.busy}</><${Problem} error=${at.error} /></>`;
}
