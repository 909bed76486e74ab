//! An encoder of this machine, loaded without hashing weights that were hashed before.

use std::fs::File;
use std::io;
use std::path::Path;

use cento_collection::fs::OsFs;
use cento_embedder::{Embedder, LoadOptions, WeightHashes};
use cento_models::{Hashes, Models};

/// Loads the encoder in a folder.
pub(crate) fn load(models: &Models, folder: &Path, options: &LoadOptions) -> cento_embedder::Result<Embedder> {
    Embedder::load_with(folder, options, &Remembered(models.hashes(&OsFs)))
}

/// The memory of `models`, as the embedder asks for it.
struct Remembered<'a>(Hashes<'a>);

impl WeightHashes for Remembered<'_> {
    fn of(&self, path: &Path, file: &File, hash: &mut dyn FnMut() -> io::Result<[u8; 32]>) -> io::Result<[u8; 32]> {
        self.0.of(path, file, hash)
    }
}
