//! Recorded figures: what each table of a plan held when it was last recorded, in `expected/NAME.json` beside the
//! plans.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// Title of a table → row → column → figure.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Expected(BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>);

impl Expected {
    /// What was recorded for a plan; nothing if it never was.
    pub(crate) fn read(plans: &Path, name: &str) -> anyhow::Result<Self> {
        let path = path(plans, name);
        if !path.exists() {
            return Ok(Self::default());
        }
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
    }

    /// Writes it for later runs to be held against.
    pub(crate) fn write(&self, plans: &Path, name: &str) -> anyhow::Result<()> {
        let path = path(plans, name);
        std::fs::create_dir_all(path.parent().expect("a file in a folder"))?;
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        std::fs::write(&path, json).with_context(|| path.display().to_string())
    }

    /// The recorded figure.
    pub(crate) fn figure(&self, table: &str, row: &str, column: &str) -> Option<f64> {
        self.0.get(table)?.get(row)?.get(column).copied()
    }

    /// The recorded rows of a table.
    pub(crate) fn rows(&self, table: &str) -> impl Iterator<Item = &str> {
        self.0.get(table).into_iter().flat_map(|rows| rows.keys().map(String::as_str))
    }

    /// Records a figure, to six digits after the point.
    pub(crate) fn record(&mut self, table: &str, row: &str, column: &str, figure: f64) {
        let rounded = (figure * 1e6).round() / 1e6;
        let rows = self.0.entry(table.to_owned()).or_default();
        rows.entry(row.to_owned()).or_default().insert(column.to_owned(), rounded);
    }
}

fn path(plans: &Path, name: &str) -> PathBuf {
    plans.join("expected").join(format!("{name}.json"))
}
