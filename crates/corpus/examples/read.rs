//! Reads files as an index run does and prints, a line each, what came out of them: text, places, figures, time.
//!
//! `scripts/readers.py` holds it against the truth of a set. Usage: `read PATH…`; a folder is walked.

use std::time::Instant;

use cento_corpus::{ReadOptions, Root, read, walk};
use serde_json::json;

fn main() {
    let options = ReadOptions::default();
    for path in std::env::args().skip(1) {
        let root = Root { label: path.clone(), path: path.clone().into() };
        let files = match walk(&root, &options) {
            Ok(walk) => walk.files,
            Err(error) => {
                println!("{}", json!({ "path": path, "error": error.to_string() }));
                continue;
            }
        };
        for file in files {
            let start = Instant::now();
            let documents = read(&file, &options).map(|mut documents| {
                let read: Vec<_> = documents.by_ref().collect();
                (read, documents.extraction().cloned())
            });
            let ms = start.elapsed().as_secs_f64() * 1e3;
            let path = file.path.display().to_string();
            let line = match documents {
                Err(error) => json!({ "path": path, "ms": ms, "error": error.to_string() }),
                Ok((read, extraction)) => {
                    let documents: Vec<_> = read
                        .into_iter()
                        .map(|document| match document {
                            Ok(document) => json!(document),
                            Err(error) => json!({ "error": error.to_string() }),
                        })
                        .collect();
                    json!({ "path": path, "n_bytes": file.n_bytes, "ms": ms, "documents": documents, "extraction": extraction })
                }
            };
            println!("{line}");
        }
    }
}
