//! The container, rows and graphs: any bytes, as they are or under checksums that hold, are an error or can be searched.
#![no_main]

use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use cento_vector::hnsw::Wanted;
use cento_vector::{NEVER, Rows, Scalar, exact, file, hnsw};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
enum Input<'a> {
    /// A file as it is.
    Raw(&'a [u8]),
    /// A payload under a header and checksums that hold.
    Rows {
        scalar: u8,
        counts: [u16; 2],
        payload: &'a [u8],
    },
    Graph {
        counts: [u16; 2],
        payload: &'a [u8],
    },
}

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fn sealed(kind: [u8; 8], counts: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut writer = file::Writer::new(Cursor::new(Vec::new()), kind).unwrap();
    writer.write_all(payload).unwrap();
    writer.finish(counts.map(u64::from)).unwrap().into_inner()
}

/// As many, and as long, as a graph says that it has.
fn rows_for(graph: &hnsw::FrozenGraph, vector: &[f32]) -> Option<Rows> {
    let path = FOLDER.path().join("plain.rows");
    let mut writer =
        cento_vector::RowWriter::new(std::fs::File::create(&path).unwrap(), vector.len(), Scalar::F32).ok()?;
    for _ in 0..graph.len() {
        writer.push(vector).ok()?;
    }
    writer.finish().ok()?;
    Rows::open(file::Mapped::open_any(path, &Scalar::KINDS).ok()?).ok()
}

fn search(path: PathBuf) {
    let _ = file::Mapped::open_any(&path, &[hnsw::KIND]).and_then(hnsw::FrozenGraph::open).map(|graph| {
        let _ = graph.verify();
        let vector = vec![(graph.dimensions() as f32).sqrt().recip(); graph.dimensions()];
        if let Some(rows) = rows_for(&graph, &vector) {
            let _ = hnsw::search(&graph, &rows, &vector, &Wanted::new(3, 8));
        }
    });
    let _ = file::Mapped::open_any(&path, &Scalar::KINDS).and_then(Rows::open).map(|rows| {
        let _ = rows.verify();
        let mut query = vec![0.0; rows.dimensions()];
        query[0] = 1.0;
        let _ = exact::search(&rows, &query, 3, None, NEVER);
    });
}

fuzz_target!(|input: Input<'_>| {
    let bytes = match input {
        Input::Raw(bytes) => bytes.to_vec(),
        Input::Rows { scalar, counts, payload } => {
            sealed(Scalar::KINDS[usize::from(scalar) % Scalar::KINDS.len()], counts, payload)
        }
        Input::Graph { counts, payload } => sealed(hnsw::KIND, counts, payload),
    };
    let path = FOLDER.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    search(path);
});
