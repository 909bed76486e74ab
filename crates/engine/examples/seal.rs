//! Gold-title precision, recall and F1 of a repaired context of k documents: `seal COLLECTION DATA [SETTINGS.toml]`.
//!
//! DATA is a folder with `queries.jsonl` and `qrels/test.tsv`; settings not given are the defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

use cento_engine::{BudgetTokenizer, SealBudget, SealConfig, SearchRequest, Searcher, SearcherOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [collection, data, rest @ ..] = &arguments[..] else {
        return Err("seal COLLECTION DATA [SETTINGS.toml]".into());
    };
    let settings: SealConfig = match rest.first() {
        Some(path) => toml::from_str(&std::fs::read_to_string(path)?)?,
        None => SealConfig::default(),
    };
    let model = std::env::var("SEAL_MODEL").ok();
    let searcher = Searcher::open(collection, SearcherOptions { model, ..SearcherOptions::default() })?;
    let tokenizer = BudgetTokenizer::named("o200k")?;
    let retrieval = searcher.retrieval(SearchRequest::new(""));
    let questions = questions(Path::new(data))?;
    println!(
        "{} questions\n  k  L       P       R      F1     all  ceiling  searches  swaps  by micro-query  found gain/loss  ms",
        questions.len()
    );
    for k in [1, 3, 5] {
        let mut without: Vec<usize> = Vec::new();
        for loops in [0, 1, 3] {
            let config =
                SealConfig { budget: SealBudget::Items(k), max_per_document: Some(1), loops, ..settings.clone() };
            let mut sums = [0.0; 8];
            let (mut hits, start) = (Vec::new(), Instant::now());
            for (question, gold) in &questions {
                let sealed = retrieval.seal(question, &config, &tokenizer)?;
                let kept: BTreeSet<&str> = sealed
                    .outcome
                    .kept
                    .iter()
                    .filter_map(|id| id.rsplit_once('#'))
                    .map(|(document, _)| document)
                    .collect();
                let found = kept.iter().filter(|document| gold.iter().any(|gold| is(document, gold))).count();
                let (precision, recall) = (found as f64 / kept.len().max(1) as f64, found as f64 / gold.len() as f64);
                let f1 = if found > 0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };

                let all = f64::from(u8::from(found == gold.len()));
                let records = || sealed.outcome.loops.iter().flat_map(|record| &record.swaps);
                // What the repair read of the question's own ranking is its first k + M; the rest only a micro-query brought.
                let mut ranked: Vec<_> = sealed.candidates.iter().collect();
                ranked.sort_by(|a, b| b.relevance.total_cmp(&a.relevance).then_with(|| a.id.cmp(&b.id)));
                let own: BTreeSet<&str> =
                    ranked.iter().take(k + config.candidates).map(|candidate| candidate.id.as_str()).collect();
                let new = records().filter(|swap| !own.contains(swap.r#in.as_str())).count() as f64;
                let ceiling = (k as f64 / gold.len() as f64).min(1.0);
                for (sum, value) in sums.iter_mut().zip([
                    precision,
                    recall,
                    f1,
                    all,
                    ceiling,
                    sealed.n_searches as f64,
                    records().count() as f64,
                    new,
                ]) {
                    *sum += value / questions.len() as f64;
                }
                hits.push(found);
            }
            let ms = start.elapsed().as_secs_f64() * 1e3 / questions.len() as f64;
            if without.is_empty() {
                without.clone_from(&hits);
            }
            let gained = hits.iter().zip(&without).filter(|(now, before)| now > before).count();
            let lost = hits.iter().zip(&without).filter(|(now, before)| now < before).count();
            let [p, r, f1, all, ceiling, searches, swaps, new] = sums;
            println!(
                "  {k}  {loops}  {p:.4}  {r:.4}  {f1:.4}  {all:.4}   {ceiling:.4}  {searches:8.2}  {swaps:5.2}  {new:.2}  +{gained} -{lost}  {ms:.1}"
            );
        }
    }
    if let Some(shown) = std::env::var("SEAL_SHOW").ok().and_then(|shown| shown.parse::<usize>().ok()) {
        let config = SealConfig { budget: SealBudget::Items(3), max_per_document: Some(1), ..settings };
        for (question, gold) in questions.iter().take(shown) {
            let outcome = retrieval.seal(question, &config, &tokenizer)?.outcome;
            println!("\n{question}\n  gold {gold:?} kept {:?}", outcome.kept);
            for record in &outcome.loops {
                println!("  {}", serde_json::to_string(record)?);
            }
        }
    }
    Ok(())
}

/// A document of a JSONL file is named by the file and its own id.
fn is(document: &str, gold: &str) -> bool {
    document == gold || document.ends_with(&format!("/{gold}")) || document.ends_with(&format!(":{gold}"))
}

fn questions(data: &Path) -> Result<Vec<(String, BTreeSet<String>)>, Box<dyn Error>> {
    let mut gold: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in std::fs::read_to_string(data.join("qrels/test.tsv"))?.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        gold.entry(fields[0].to_owned()).or_default().insert(fields[1].to_owned());
    }
    let mut questions = Vec::new();
    for line in std::fs::read_to_string(data.join("queries.jsonl"))?.lines() {
        let row: serde_json::Value = serde_json::from_str(line)?;
        if let Some(gold) = gold.remove(row["_id"].as_str().unwrap_or_default()) {
            questions.push((row["text"].as_str().unwrap_or_default().to_owned(), gold));
        }
    }
    Ok(questions)
}
