//! Text in, unit vectors out, on any device, one vector per text.
//!
//! [`Embedder::load`] opens a folder as sentence-transformers saves it; [`Embedder::embed`] turns texts into vectors;
//! [`cache`] keeps what was embedded. The data flow is the order of the modules below.
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

mod embedder;
mod folder;
mod tokens;
mod pack;
mod device;
mod weights;
mod encoder;
mod layers;
mod kernels;
mod pooling;
pub mod cache;
mod fingerprint;
mod error;

pub use device::DeviceChoice;
pub use embedder::{DEFAULT_BATCH_TOKENS, Embedder, Embedding, Kind, LoadOptions};
pub use error::{Error, Result};
pub use tokens::Tokenizer;
