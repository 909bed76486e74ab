//! What the environment says about models, read in one place.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::card::Card;
use crate::error::{Error, Result};

/// The hub that is asked first.
const DEFAULT_HF_ENDPOINT: &str = "https://huggingface.co";

/// Where models lie and how they may be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The folder with one folder per model.
    pub models_dir: PathBuf,
    /// The folder that remembers hashes of large files; absent where the environment names no place for caches.
    pub hashes_dir: Option<PathBuf>,
    /// Address of the hub or of a mirror, with its scheme.
    pub hf_endpoint: String,
    /// An HTTP proxy that the hub may be reached through.
    pub proxy: Option<String>,
    /// True leaves the hub out; a card's other sources are still tried.
    pub offline: bool,
    /// Ways to start pip, each a program and its first arguments, tried until one is installed.
    pub pip: Vec<Vec<String>>,
}

impl Settings {
    /// `CENTO_MODELS`, else `$XDG_CACHE_HOME/cento/models`, else `~/.cache/cento/models`; `HF_ENDPOINT`;
    /// `HF_HUB_OFFLINE`; `HTTPS_PROXY` or `ALL_PROXY`.
    ///
    /// # Errors
    /// [`Error::NoModelsFolder`] when none of the three folders is named.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// The same from any table of variables; an empty value counts as none.
    ///
    /// # Errors
    /// As [`Settings::from_env`].
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let text = |name: &str| path(name).map(|value| value.to_string_lossy().into_owned());
        let cache = path("XDG_CACHE_HOME")
            .filter(|cache| cache.is_absolute())
            .or_else(|| path("HOME").map(|home| home.join(".cache")))
            .map(|cache| cache.join("cento"));
        let in_cache = |name: &str| cache.as_ref().map(|cache| cache.join(name));
        let models_dir = path("CENTO_MODELS").or_else(|| in_cache("models")).ok_or(Error::NoModelsFolder)?;
        Ok(Self {
            models_dir,
            hashes_dir: in_cache("hashes"),
            hf_endpoint: text("HF_ENDPOINT").unwrap_or_else(|| DEFAULT_HF_ENDPOINT.to_owned()),
            proxy: ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"].into_iter().find_map(text),
            offline: text("HF_HUB_OFFLINE").is_some_and(|value| is_true(&value)),
            pip: [&["python3", "-m", "pip"][..], &["pip3"], &["pip"]]
                .map(|words| words.iter().map(|&word| word.to_owned()).collect())
                .into(),
        })
    }

    /// Where the model of a card lies, whether or not it is there.
    pub(crate) fn folder(&self, card: &Card) -> PathBuf {
        self.models_dir.join(&card.name)
    }
}

/// As `huggingface_hub` reads its switches.
fn is_true(value: &str) -> bool {
    ["1", "on", "yes", "true"].iter().any(|word| value.eq_ignore_ascii_case(word))
}
