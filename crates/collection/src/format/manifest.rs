//! The manifest: which segments, at which generation, built with what. The only file of a collection that is ever
//! replaced.
//!
//! `manifests/<generation>.json` is written and synced first, then `manifest.json` is replaced by rename: a crash
//! leaves the old generation or the new one, whole. Both carry a checksum of their own content.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{AtPath, Error, Result};
use crate::format::calibration::Calibration;
use crate::format::config::CollectionConfig;
use crate::format::graph_health::GraphHealth;
use crate::format::layout::{CURRENT, GENERATIONS};
use crate::format::losses::{Loss, Stale};
use crate::format::names;
use crate::fs::{Folder, Fs, write_atomically};

/// The collection format this build writes, and the only one it reads.
pub const FORMAT: u32 = 2;

/// One generation of a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Collection format; see [`FORMAT`].
    pub format: u32,
    /// Version of Cento that wrote it.
    pub cento: String,
    /// Counts commits, from 1.
    pub generation: u64,
    /// The settings every row was built with.
    pub config: CollectionConfig,
    /// Label of each indexed root and the folder it named.
    pub roots: BTreeMap<String, PathBuf>,
    /// The live segments, in order.
    pub segments: Vec<SegmentEntry>,
    /// Documents that were damaged beyond repair and were not indexed again since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// Documents whose files could not be read when they were indexed last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<Stale>,
    /// File under `reports/` with the reports on files, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reports: Option<String>,
    /// The meaning of its cosines; none where that was not measured yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
}

/// A segment as a manifest names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// Folder under `segments/`.
    pub name: String,
    /// Documents in it, dead ones too.
    pub n_documents: u64,
    /// Rows in it, dead ones too.
    pub n_rows: u64,
    /// File under `deletes/` with its dead documents, if there are any.
    pub deletes: Option<String>,
    /// The measured quality of its graphs, where it has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<GraphHealth>,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    checksum: String,
    manifest: Manifest,
}

impl Manifest {
    /// Reads the current manifest of a collection.
    pub fn read(folder: &Path) -> Result<Self> {
        let read = Folder::open(folder).at(folder).and_then(|folder| Self::read_file(&folder, CURRENT));
        match read {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Err(Error::NotFound { path: folder.to_owned() })
            }
            read => read,
        }
    }

    /// Reads the current manifest or, if it is damaged or gone, the newest of those kept beside it; what is wrong with
    /// the current one comes along.
    pub fn read_or_newest(folder: &Path) -> Result<(Self, Option<Error>)> {
        let error = match Self::read(folder) {
            Ok(manifest) => return Ok((manifest, None)),
            Err(error @ (Error::Corrupt { .. } | Error::NotFound { .. })) => error,
            Err(error) if error.is_of_the_disk() => error,
            Err(error) => return Err(error),
        };
        let kept = Self::read_generations(folder).unwrap_or_default();
        match kept.into_iter().max_by_key(|manifest| manifest.generation) {
            Some(newest) => Ok((newest, Some(error))),
            None => Err(error),
        }
    }

    /// Reads the manifest of a generation.
    pub fn read_generation(folder: &Path, generation: u64) -> Result<Self> {
        Self::read_file(&Folder::open(folder).at(folder)?, &format!("{GENERATIONS}/{generation}.json"))
    }

    /// Reads the manifests of all generations that can be read.
    pub fn read_generations(folder: &Path) -> Result<Vec<Self>> {
        let path = folder.join(GENERATIONS);
        let folder = Folder::open(folder).and_then(|folder| folder.folder(GENERATIONS)).at(&path)?;
        let names = folder.names().at(&path)?.into_iter().filter(|name| names::manifest(name).is_some());
        Ok(names.filter_map(|name| Self::read_file(&folder, &name).ok()).collect())
    }

    /// Reads a manifest that is known to be there.
    pub fn read_file(folder: &Folder, name: &str) -> Result<Self> {
        let path = folder.path().join(name);
        Self::parse(&folder.read(name).at(&path)?, &path)
    }

    /// Reads the current manifest, if there is a collection.
    pub fn read_if_any(folder: &Path) -> Result<Option<Self>> {
        match Self::read(folder) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let corrupt = |reason: String| Error::Corrupt { path: path.to_owned(), reason };
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
        let format = value
            .pointer("/manifest/format")
            .and_then(serde_json::Value::as_u64)
            .ok_or_else(|| corrupt("no format number".to_owned()))?;
        if format > u64::from(FORMAT) {
            return Err(Error::NewerFormat {
                path: path.to_owned(),
                found: u32::try_from(format).unwrap_or(u32::MAX),
                supported: FORMAT,
            });
        }
        if format < u64::from(FORMAT) {
            return Err(Error::OlderFormat { path: path.to_owned(), found: format as u32, supported: FORMAT });
        }
        let sealed: Sealed = serde_json::from_value(value).map_err(|error| corrupt(error.to_string()))?;
        if checksum(&sealed.manifest) != sealed.checksum {
            return Err(corrupt("the checksum does not match the content".to_owned()));
        }
        match sealed.manifest.strange_name() {
            Some(name) => Err(corrupt(format!("names {name:?}, which is no name that cento gives"))),
            None => Ok(sealed.manifest),
        }
    }

    /// A name in it that Cento does not give: it might lead anywhere.
    fn strange_name(&self) -> Option<&str> {
        let reports = self.reports.as_deref().filter(|name| !names::is_reports(name));
        reports.or_else(|| self.strange_name_of_segment())
    }

    fn strange_name_of_segment(&self) -> Option<&str> {
        self.segments.iter().find_map(|entry| {
            let segment = Some(&entry.name).filter(|name| !names::is_segment(name));
            let tombstones = entry.deletes.as_ref().filter(|name| !names::is_tombstones(name));
            segment.or(tombstones).map(String::as_str)
        })
    }

    /// Publishes this generation. After it returns, neither a crash nor a power loss brings the old one back.
    pub fn publish(&self, fs: &dyn Fs, folder: &Path) -> Result<()> {
        let json = self.seal();
        let generations = folder.join(GENERATIONS);
        write_atomically(fs, &generations.join(format!("{}.json", self.generation)), &json)?;
        write_atomically(fs, &folder.join(CURRENT), &json)
    }

    /// Its fingerprint: 32 bytes of BLAKE3 over its content, in hex.
    pub fn checksum(&self) -> String {
        checksum(self)
    }

    /// The manifest as a file holds it.
    pub fn seal(&self) -> Vec<u8> {
        let sealed = Sealed { checksum: checksum(self), manifest: self.clone() };
        let mut json = serde_json::to_vec_pretty(&sealed).expect("a manifest is always JSON");
        json.push(b'\n');
        json
    }
}

fn checksum(manifest: &Manifest) -> String {
    let json = serde_json::to_vec(manifest).expect("a manifest is always JSON");
    blake3::hash(&json).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::config::Pooling;
    use crate::fs::OsFs;

    fn manifest() -> Manifest {
        let config = CollectionConfig {
            model: "tiny".to_owned(),
            model_fingerprint: "00".to_owned(),
            dimensions: 4,
            chunk_tokens: "128".to_owned(),
            chunker_version: 1,
            header: "structured".to_owned(),
            language: "english".to_owned(),
            vectors: "f32".to_owned(),
            precision: "f32".to_owned(),
            pooling: Pooling::Plain,
            late: None,
            given: None,
            endpoint: None,
            context: None,
            prompt: None,
        };
        Manifest {
            format: FORMAT,
            cento: "0.1.0".to_owned(),
            generation: 3,
            config,
            roots: BTreeMap::new(),
            segments: Vec::new(),
            losses: Vec::new(),
            stale: Vec::new(),
            reports: None,
            calibration: None,
        }
    }

    #[test]
    fn every_flipped_byte_of_a_manifest_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(GENERATIONS)).unwrap();
        manifest().publish(&OsFs, folder.path()).unwrap();
        assert_eq!(Manifest::read(folder.path()).unwrap(), manifest());
        let path = folder.path().join(CURRENT);
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            if bytes[at].is_ascii_whitespace() {
                continue; // the layout of the JSON carries no meaning
            }
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let read = Manifest::parse(&flipped, &path);
            assert!(read.is_err(), "byte {at} {:?} changed unnoticed", bytes[at] as char);
        }
    }

    #[test]
    fn an_older_format_is_named_as_such_before_its_content_is_read() {
        let error = Manifest::parse(br#"{"manifest": {"format": 1}}"#, Path::new("manifest.json")).unwrap_err();
        assert!(matches!(error, Error::OlderFormat { found: 1, supported: FORMAT, .. }), "{error}");
    }

    #[test]
    fn a_newer_format_is_named_as_such() {
        let newer = Manifest { format: FORMAT + 1, ..manifest() };
        let json = serde_json::to_vec(&Sealed { checksum: checksum(&newer), manifest: newer }).unwrap();
        let error = Manifest::parse(&json, Path::new("manifest.json")).unwrap_err();
        assert!(matches!(error, Error::NewerFormat { found, supported: FORMAT, .. } if found == FORMAT + 1), "{error}");
    }
}
