//! What the environment says about models, read in one place.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use cento_collection::fs::read_bounded;

use crate::card::Card;
use crate::error::{Error, Result};

/// The hub that is asked first.
const DEFAULT_HF_ENDPOINT: &str = "https://huggingface.co";
/// A longer file is no token.
const TOKEN_BYTES_MAX: u64 = 1 << 12;

/// Where models lie and how they may be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The folder with one folder per model.
    pub models_dir: PathBuf,
    /// The folder that remembers hashes of large files; absent where the environment names no place for caches.
    pub hashes_dir: Option<PathBuf>,
    /// Address of the hub or of a mirror, with its scheme.
    pub hf_endpoint: String,
    /// Where Hugging Face's own tools keep what they downloaded.
    pub hub_cache: Option<PathBuf>,
    /// The user's name to the hub.
    pub token: Option<Token>,
    /// An HTTP proxy that the hub may be reached through.
    pub proxy: Option<String>,
    /// True leaves the hub out; a card's other sources are still tried.
    pub offline: bool,
    /// Ways to start pip, each a program and its first arguments, tried until one is installed.
    pub pip: Vec<Vec<String>>,
}

impl Settings {
    /// `CENTO_MODELS`, else `$XDG_CACHE_HOME/cento/models`, else `~/.cache/cento/models`; `HF_ENDPOINT`;
    /// `HF_HUB_OFFLINE`; `HTTPS_PROXY` or `ALL_PROXY`. As Hugging Face's tools do: `HF_HUB_CACHE`, else
    /// `$HF_HOME/hub`; `HF_TOKEN`, else the file at `HF_TOKEN_PATH`, else `$HF_HOME/token`, unless
    /// `HF_HUB_DISABLE_IMPLICIT_TOKEN` is set; `HF_HOME` is else `~/.cache/huggingface`.
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
        let hf_home = path("HF_HOME").or_else(|| {
            let cache = path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")));
            cache.map(|cache| cache.join("huggingface"))
        });
        let in_cache = |name: &str| cache.as_ref().map(|cache| cache.join(name));
        let models_dir = path("CENTO_MODELS").or_else(|| in_cache("models")).ok_or(Error::NoModelsFolder)?;
        Ok(Self {
            models_dir,
            hashes_dir: in_cache("hashes"),
            hf_endpoint: text("HF_ENDPOINT").unwrap_or_else(|| DEFAULT_HF_ENDPOINT.to_owned()),
            hub_cache: path("HF_HUB_CACHE").or_else(|| hf_home.as_ref().map(|home| home.join("hub"))),
            token: Token::find(&variable, hf_home.as_deref()),
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

/// A token of the hub; never shown, not by `Debug` either.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token of this text; nothing for a blank one, or one that no header can carry.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.to_owned()))
    }

    /// The text, for a header.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    fn find(variable: &impl Fn(&str) -> Option<OsString>, hf_home: Option<&Path>) -> Option<Self> {
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        if text("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(|value| !value.is_empty()) {
            return None;
        }
        let read = |path: PathBuf| {
            let bytes = read_bounded(&path, TOKEN_BYTES_MAX).ok()?;
            Self::new(&String::from_utf8(bytes).ok()?)
        };
        text("HF_TOKEN")
            .and_then(|text| Self::new(&text))
            .or_else(|| read(PathBuf::from(text("HF_TOKEN_PATH").filter(|path| !path.is_empty())?)))
            .or_else(|| read(hf_home?.join("token")))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// As `huggingface_hub` reads its switches.
fn is_true(value: &str) -> bool {
    ["1", "on", "yes", "true"].iter().any(|word| value.eq_ignore_ascii_case(word))
}
