//! A small collection that targets ask, made once a process. Included by those that need it.

use std::path::{Path, PathBuf};

use cento_engine::{IndexOptions, OsFs, Root};

/// A folder with notes and their collection, removed with the process.
pub struct Place {
    pub folder: tempfile::TempDir,
}

pub fn tiny_model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/tiny")
}

impl Place {
    pub fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.notes()).unwrap();
        for (n, text) in ["The moon pulls the sea.", "Bread is flour and water.", "Cheese is milk."].iter().enumerate() {
            let day = n + 1;
            let head = format!("year: 202{n}\ntags: [a, b{n}]\nprice: {n}.5\nday: 2020-01-0{day}");
            let text = format!("---\n{head}\n---\n# Note {n}\n\n{text}\n\n## More\n\nAsk Ada Quist of 194{n} in [Oslo](0.md#more).\n");
            std::fs::write(place.notes().join(format!("{n}.md")), text).unwrap();
        }
        place.index();
        place
    }

    pub fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    pub fn collection(&self) -> PathBuf {
        self.folder.path().join("collection")
    }

    pub fn index(&self) {
        let model = Some(tiny_model().to_str().unwrap().to_owned());
        let options = IndexOptions { model, graph_rows_min: 1, ..IndexOptions::default() };
        let root = Root { label: "notes".to_owned(), path: self.notes() };
        cento_engine::index(&self.collection(), &[root], &options, &OsFs, &mut |_| {}).unwrap();
    }
}
