//! Models: getting an encoder, and knowing what it is.
//!
//! A card says what a model is and what each of its files hashes to. A folder `<models>/<card>/` is one whole model: it
//! appears by one rename, after every file was checked and synced, so a half-downloaded model is never seen, not after
//! a power loss either. A model of the hub that no card ships for gets one in its folder when it is pulled, with the
//! checksums of that first sight. Only [`Models::pull`] touches the network, and only for a model that is not there.
//!
//! ```
//! use cento_models::{DEFAULT_MODEL, Error, Models, Settings, cards};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let models_dir = folder.path().to_str().unwrap().to_owned();
//! let settings = Settings::from_variables(|name| (name == "CENTO_MODELS").then(|| models_dir.clone().into()))?;
//! let models = Models::new(cards().to_vec(), settings);
//! assert_eq!(models.show(DEFAULT_MODEL)?.dimensions, 384);
//! assert!(matches!(models.resolve(DEFAULT_MODEL), Err(Error::NotPulled { .. })));
//! # Ok::<(), Error>(())
//! ```

mod error;

mod card;
mod settings;
mod known;
mod catalogue;
mod verify;
mod hashes;

mod progress;
mod pull;
mod hub;
mod wheel;
mod incoming;
mod repository;

#[cfg(test)]
mod tests;

pub use card::{Card, CardFile, Prompts, Source, Use, cards};
pub use catalogue::{DEFAULT_MODEL, Listed, Located, Models, Presence, STATIC};
pub use error::{Attempt, Error, Failure, Result};
pub use hashes::Hashes;
pub use known::{Known, known};
pub use progress::{Found, Progress, Shape};
pub use pull::Pulled;
pub use repository::pull::Look;
pub use settings::{Settings, Token};
pub use verify::{FileCheck, FileState};
