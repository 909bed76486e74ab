//! How well whole documents are ranked, on evaluation data: `CENTO_DATA` names the folder that has it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

use super::{english, segment};
use crate::{Bm25, Part, Row, Searcher, Unit};

/// bm25s over whole documents, with English stems and stop words, has .6947.
const SCIFACT_NDCG_FLOOR: f64 = 0.685;

#[test]
fn scifact_is_ranked_as_well_as_elsewhere() {
    let Some(folder) = env::var_os("CENTO_DATA").map(|data| PathBuf::from(data).join("scifact")).filter(|f| f.is_dir())
    else {
        println!("skipped: CENTO_DATA does not name a folder with scifact");
        return;
    };
    let corpus = lines(&folder.join("corpus.jsonl"));
    let rows: Vec<Row<'_>> =
        corpus.iter().map(|row| Row { text: string(row, "text"), header: "", title: string(row, "title") }).collect();
    let document_of_row: Vec<u32> = (0..rows.len() as u32).collect();
    let segment = segment(&english(), &rows);
    let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &document_of_row };
    let searcher = Searcher::new(vec![part], Unit::Document, Bm25::default()).unwrap();

    let relevant = judgements(&folder.join("qrels/train.tsv"));
    let mut sum = 0.0;
    for query in lines(&folder.join("queries.jsonl")) {
        let Some(relevant) = relevant.get(string(&query, "_id")) else { continue };
        let mut hits: Vec<(f64, &str)> = searcher.score(string(&query, "text")).unwrap()[0]
            .iter()
            .map(|hit| (hit.score, string(&corpus[hit.unit as usize], "_id")))
            .collect();
        hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(a.1)));
        sum += ndcg_at_10(hits.iter().map(|(_, id)| *id), relevant);
    }
    let ndcg = sum / relevant.len() as f64;
    println!("scifact, {} queries: nDCG@10 {ndcg:.4}", relevant.len());
    assert!(ndcg >= SCIFACT_NDCG_FLOOR, "{ndcg}");
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn judgements(path: &Path) -> HashMap<String, HashSet<String>> {
    let mut relevant: HashMap<String, HashSet<String>> = HashMap::new();
    for line in fs::read_to_string(path).unwrap().lines().skip(1) {
        let [query, document, "1"] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line:?}") };
        relevant.entry(query.to_owned()).or_default().insert(document.to_owned());
    }
    relevant
}

/// With judgements of 0 and 1.
fn ndcg_at_10<'a>(ranking: impl Iterator<Item = &'a str>, relevant: &HashSet<String>) -> f64 {
    let gain = |at: usize| 1.0 / (at as f64 + 2.0).log2();
    let found: f64 =
        ranking.take(10).enumerate().filter(|(_, id)| relevant.contains(*id)).map(|(at, _)| gain(at)).sum();
    found / (0..relevant.len().min(10)).map(gain).sum::<f64>()
}
