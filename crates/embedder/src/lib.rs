//! Text in, unit vectors out, on any device, one vector per text.
//!
//! [`Embedder::load`] opens a folder as sentence-transformers saves it; [`Embedder::embed`] turns texts into vectors,
//! [`Embedder::embed_late`] the chunks of whole documents; [`cache`] keeps what was embedded.
//!
//! Data flow: `folder` (what the model is) → `weights`; text → `tokens` → `pack` → `encoder` (made of `layers`, which
//! call `kernels`) → `pooling` → vector.
//!
//! ```
//! use cento_embedder::{Embedder, Kind, LoadOptions};
//!
//! # fn main() -> cento_embedder::Result<()> {
//! # let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny"));
//! let embedder = Embedder::load(folder, &LoadOptions::default())?;
//! let texts = ["the price of bread".to_owned(), "a long walk".to_owned()];
//! let embeddings = embedder.embed(&texts, Kind::Document)?;
//! assert_eq!(embeddings[0].vector.len(), embedder.dimensions());
//! assert!(!embeddings[0].truncated);
//! # Ok(())
//! # }
//! ```

pub mod cache;
mod cross;
mod device;
mod embedder;
mod encoder;
mod error;
mod fingerprint;
mod folder;
mod kernels;
mod late;
mod layers;
mod pack;
mod pooling;
mod precision;
mod scan;
mod tokens;
mod weights;

pub use cross::{CrossEncoder, PairLogit};
pub use device::{DeviceChoice, Devices, devices};
pub use embedder::{
    DEFAULT_ACCELERATOR_BATCH_TOKENS, DEFAULT_BATCH_TOKENS, DEFAULT_GPU_BATCH_TOKENS, Embedder, Embedding, Kind,
    LoadOptions, THREADS_MAX,
};
pub use encoder::ARCHITECTURES;
pub use encoder::stop::{NEVER, Stop};
pub use error::{Error, Result};
pub use folder::describe::{Description, TABLE, Use, describe, knows_architecture};
#[cfg(any(test, feature = "testing"))]
pub use kernels::gpu::lose_gpus_after;
pub use kernels::gpu::{Adapter, AdapterKind};
pub use late::{DEFAULT_OVERLAP, LateDocument, LateWindows};
pub use precision::Precision;
pub use scan::{Accelerator, Kept, RowType, Scan};
pub use tokens::Tokenizer;
pub use weights::{AlwaysHashed, WeightHashes};
