//! An encoder of this machine, loaded without hashing weights that were hashed before; and what a model will be before
//! its weights are there.

use std::fs::File;
use std::io;
use std::path::Path;

use cento_collection::fs::OsFs;
use cento_embedder::{CrossEncoder, Description, Embedder, LoadOptions, Use, WeightHashes, describe};
use cento_models::{Hashes, Models, Prompts, Shape};

/// Loads the encoder in a folder.
pub(crate) fn load(models: &Models, folder: &Path, options: &LoadOptions) -> cento_embedder::Result<Embedder> {
    Embedder::load_with(folder, options, &Remembered(models.hashes(&OsFs)))
}

/// Loads the cross-encoder in a folder.
pub(crate) fn load_pairs(
    models: &Models,
    folder: &Path,
    options: &LoadOptions,
) -> cento_embedder::Result<CrossEncoder> {
    CrossEncoder::load_with(folder, options, &Remembered(models.hashes(&OsFs)))
}

/// Looks at a model that is being pulled: everything but its weights is in the folder.
///
/// # Errors
/// The embedder's words for the part that it does not compute.
pub fn look(folder: &Path) -> Result<Shape, String> {
    let Description { of_use, architecture, pooling, dimensions, max_tokens, prompts } =
        describe(folder).map_err(|error| error.to_string())?;
    let of_use = match of_use {
        Use::Encoder => cento_models::Use::Encoder,
        Use::Reranker => cento_models::Use::Reranker,
    };
    let [query, document] = prompts;
    Ok(Shape { of_use, architecture, pooling, dimensions, max_tokens, prompts: Prompts { query, document } })
}

/// The memory of `models`, as the embedder asks for it.
struct Remembered<'a>(Hashes<'a>);

impl WeightHashes for Remembered<'_> {
    fn of(&self, path: &Path, file: &File, hash: &mut dyn FnMut() -> io::Result<[u8; 32]>) -> io::Result<[u8; 32]> {
        self.0.of(path, file, hash)
    }

    fn has_passed(&self, check: &str) -> bool {
        self.0.has_passed(check)
    }

    fn passed(&self, check: &str) {
        self.0.remember_pass(check);
    }
}
