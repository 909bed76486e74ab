//! End-to-end tests: the binary and the files, as users meet them.
//!
//! | file | claims |
//! |---|---|
//! | `tidy` | crates and modules know whom they may; what the rules of the house say of files, functions and words |
//! | `readme` | the commands by task, and what README and the help say, is what happens |
//! | `answers` | search, context, run, get: content, budgets, citations, invariance |
//! | `citations` | get, and where a context says its sources are: every spelling of a place opens it |
//! | `filters` | filters, fields, list, delete: which documents answer, and what is said of a filter that cannot be |
//! | `anchors` | filters on pages, sheets, rows and lines: at every door, and contexts that deliver nothing else |
//! | `late` | late vectors: which a collection has, which a search uses |
//! | `collection` | adding, changing, vanishing, deleting, killing, locking, damage |
//! | `lifecycle` | compact, snapshot, earlier generations, doctor, repair |
//! | `scale` | past one machine: parts that several processes index, adopted, or served as shards |
//! | `replicas` | shards that several servers have: killed, stopped, replaced under load, named in a file that changes |
//! | `shards` | commands over shards, answers of a part, what lies where a shard should be |
//! | `embed` | texts into matrices: types, ids, manifest, kills and reruns, bad input; the speed of an encoder |
//! | `devices` | the list of devices, what is chosen, names that are none; a GPU ranks as the CPU does |
//! | `elsewhere` | encoders at endpoints: the vectors of another cento serve, keys, faults, kills, what a run would cost |
//! | `bad_input` | each kind of bad input: the message, the exit code, nothing lost |
//! | `bounds` | requests beyond their bounds, files without an end, readers that go away |
//! | `children` | files read in children: the confined child itself, what is told of files that failed |
//! | `unreadable` | what cannot be read and roots that are gone: nothing is removed without a word |
//! | `evaluation` | eval, compare, fuse: figures by hand, gates, formats, orders |
//! | `contexts` | run with scopes and contexts; eval-context: evidence by hand |
//! | `assemble` | candidates of another engine: files, flags, trace and replay, refusals; the same bytes over HTTP |
//! | `judged` | eval-answers: stand-ins, a scripted reader and judge, its record, what goes wrong |
//! | `pipelines` | the configuration of a small-to-big pipeline as a policy: what it delivers, what it must not contradict |
//! | `small_to_big` | windows of sentences, radii by document and question, a second search, several questions at once |
//! | `commands` | files that a command of the user's reads: end to end, what one that fails costs, who may name one |
//! | `passwords` | files with a password: opened, reported, kept when nobody opens them any more, never shown |
//! | `phrases` | quoted phrases: what answers has them, what is said where none does, what a trace keeps |
//! | `priors` | priors learned from judged questions or sentences: figures by hand, the policy they make, what cannot be learned from |
//! | `requests` | include, exclude, order, a budget left to the curve, an endpoint for `seal`: what is delivered, replayed, refused |
//! | `reranked` | a reranker's order at every door, its endpoints, its time, its part in contexts and their replay |
//! | `traces` | replay and diff: the same bytes or what differs; the schema |
//! | `whys` | why and why-not: every reason in words, and the change that undoes a decision |
//! | `tune` | settings chosen by judged questions: the gain told is the gain found, no advice without one |
//! | `reproduce` | cento-bench reproduce: plans, recorded figures, the page; bench: speeds |
//! | `settings` | command line over environment over files over default; what a file of a folder may say, and trust |
//! | `serve` | cento serve: the same bytes as at other doors, refusals of one form, the log, the metrics |
//! | `headers` | contexts that a language model writes behind headers: who sees them, what they cost, kills |
//! | `guarded` | who is answered by cento serve, and hostile clients |
//! | `writing` | cento serve --writable: documents, files and jobs, who may write, what is refused |
//! | `uploads` | collections made over HTTP, and files handed over |
//! | `mixed` | searches while a writer works and is killed: each answer is that of its generation |
//! | `clients` | the words of OpenAI, Cohere, Jina and TEI; their clients, where they are installed |
//! | `guide` | every page of docs/: its commands, their output, its links; the reference has all commands |
//! | `documented` | the examples of docs/serve.md |
//! | `page` | the page in a browser (`browser`): each view's numbers, the keyboard, hostile texts, what goes wrong |
//! | `copied` | what the page lets people copy: right for any text, in a real shell |
//! | `board` | the page in a browser: files of an evaluation, wins and losses, judgements that `cento eval` reads |
//! | `repeats` | the page in a browser: gates of redundancy, named where they hold a passage and moved until it is in |
//! | `crowded` | the page in a browser: ten thousand sections, long names, collections damaged or replaced under it |
//! | `packed` | answers packed by gzip, excerpts of traces, the embedding cache, names of fields that were meant |
//! | `mcp` | the Model Context Protocol over pipes and over HTTP |
//! | `pull` | models of the hub by name: a hub on the loopback (`hub`), its moods and lies, the cache of other tools |
//! | `vectors` | vectors of one's own: indexed, searched, run and served without an encoder |
//! | `golden` | rankings and contexts of two small sets, held still with the default encoder, where both are there |
//! | `quality` | figures on real data with the default encoder, where both are there |

mod anchors;
mod answers;
mod assemble;
mod bad_input;
mod board;
mod bounds;
mod browser;
mod children;
mod citations;
mod clients;
mod collection;
mod commands;
mod contexts;
mod copied;
mod crowded;
mod devices;
mod documented;
mod elsewhere;
mod embed;
mod evaluation;
mod filters;
mod golden;
mod guarded;
mod guide;
mod headers;
mod hub;
mod judged;
mod late;
mod lifecycle;
mod mcp;
mod mixed;
mod packed;
mod page;
mod passwords;
mod phrases;
mod pipelines;
mod priors;
mod pull;
mod quality;
mod readme;
mod repeats;
mod reproduce;
mod requests;
mod reranked;
mod scale;
mod serve;
mod serving;
mod settings;
mod replicas;
mod shards;
mod small_to_big;
mod support;
mod tidy;
mod traces;
mod tune;
mod unreadable;
mod uploads;
mod vectors;
mod whys;
mod writing;
