//! Options of the embedding cache.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

/// Where embeddings are kept from one run to the next.
#[derive(Debug, Clone, Args)]
pub(crate) struct CachePlace {
    /// The folder of the embedding cache, which all collections share [default: cento/embeddings in $XDG_CACHE_HOME or
    /// ~/.cache]
    #[arg(long = "cache", value_name = "DIR", global = true, help_heading = "Embedding cache")]
    pub(crate) folder: Option<PathBuf>,
    /// How much of the disk the cache may take: bytes, or a number with KiB, MiB, GiB or TiB. After a run that kept
    /// something, Cento removes what was used longest ago
    #[arg(
        long = "cache-max-bytes",
        value_name = "BYTES",
        global = true,
        default_value_t = ByteCount(cento_engine::CACHE_BYTES_MAX),
        help_heading = "Embedding cache"
    )]
    pub(crate) max_bytes: ByteCount,
}

#[derive(Debug, Args)]
pub(crate) struct Cache {
    #[command(flatten)]
    pub(crate) place: CachePlace,
    #[command(subcommand)]
    pub(crate) verb: CacheVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheVerb {
    /// Show what the cache holds, model by model
    Status,
    /// Remove what is damaged, kept twice, or above the limit; costs no more than embedding it again
    Prune {
        /// How many bytes the models asked for may keep [default: --cache-max-bytes]; 0 removes all
        #[arg(long, value_name = "BYTES")]
        max_bytes: Option<ByteCount>,
        /// Only this model: its name, or the beginning of its fingerprint, as `cento cache status` shows them
        #[arg(long, value_name = "NAME|FINGERPRINT")]
        model: Option<String>,
        /// Remove everything (of --model, if given)
        #[arg(long, value_parser = clap::builder::BoolishValueParser::new(), conflicts_with = "max_bytes")]
        all: bool,
        /// Say what would be removed, and remove nothing
        #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
        dry_run: bool,
    },
}

/// A number of bytes, as people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteCount(pub(crate) u64);

const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl FromStr for ByteCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unit = UNITS.iter().find_map(|(unit, n_bytes)| Some((text.strip_suffix(unit)?, *n_bytes)));
        let (number, unit_bytes) = unit.unwrap_or((text, 1));
        let n_bytes = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(unit_bytes));
        n_bytes.map(Self).ok_or_else(|| "expected a number of bytes, such as 500000000 or 8GiB".to_owned())
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, n_bytes)| self.0 > 0 && self.0.is_multiple_of(*n_bytes)) {
            Some((unit, n_bytes)) => write!(f, "{}{unit}", self.0 / n_bytes),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_and_shown_with_units() {
        for (text, n_bytes) in [("8GiB", 8 << 30), ("0", 0), ("1 MiB", 1 << 20), ("1000", 1000), ("3TiB", 3 << 40)] {
            assert_eq!(text.parse(), Ok(ByteCount(n_bytes)));
            assert_eq!(ByteCount(n_bytes).to_string().parse(), Ok(ByteCount(n_bytes)));
        }
        for text in ["", "8GB", "GiB", "-1", "1.5GiB", "99999999999TiB"] {
            assert!(text.parse::<ByteCount>().is_err(), "{text:?}");
        }
    }
}
