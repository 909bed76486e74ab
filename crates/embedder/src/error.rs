//! What can go wrong between a model folder and a vector, by what the caller can do about it.

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::kernels::gpu::NO_MEMORY;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error in loading or using a model, or in reading an embedding log.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Error {
    /// The model folder lacks a file.
    #[error("{path}: not found; the model folder needs {purpose}: fetch the model again or name another folder")]
    Missing {
        /// The file looked for.
        path: PathBuf,
        /// Its purpose, and what else could stand in its place.
        purpose: &'static str,
    },
    /// A file is there and cannot be what it should be: cut off, altered, or contradicting another file.
    #[error("{path}: {reason}; if the download was interrupted, delete the file and fetch the model again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        reason: String,
    },
    /// The model is sound, and asks for something this version does not compute.
    #[error("{path}: {what} {name:?} is not supported; supported: {supported}")]
    Unsupported {
        /// The file that asks for it.
        path: PathBuf,
        /// The kind of thing: architecture, module, pooling, activation.
        what: &'static str,
        /// Its name in the file.
        name: String,
        /// Names that could stand there.
        supported: &'static str,
    },
    /// There is no prompt of that name, or it cannot be used.
    #[error("prompt {name:?} {reason}")]
    Prompt {
        /// As asked for.
        name: String,
        /// The fault of it.
        reason: String,
    },
    /// Vectors cannot be cut to that length.
    #[error("{asked} dimensions: the model's vectors have {available}; ask for 1 to {available}")]
    Dimensions {
        /// As asked for.
        asked: usize,
        /// Length of the model's vectors.
        available: usize,
    },
    /// The number type asked for is unknown, or the device does not compute in it.
    #[error("precision {precision}: {reason}")]
    Precision {
        /// As the caller named it.
        precision: String,
        /// Precisions to ask for instead.
        reason: &'static str,
    },
    /// More threads are asked for than any machine makes use of.
    #[error("{asked} threads are more than {most}; ask for fewer, or for 0: one a core")]
    Threads {
        /// As asked for.
        asked: usize,
        /// The limit.
        most: usize,
    },
    /// The device asked for is not there, or this build cannot use it.
    #[error("device {device}: {reason}")]
    Device {
        /// As the caller named it.
        device: String,
        /// The missing part, and the way out.
        reason: String,
    },
    /// A text could not be turned into tokens.
    #[error("text {index} cannot be tokenized: {reason}")]
    Tokenize {
        /// Position among the texts of the call.
        index: usize,
        /// The tokenizer's message.
        reason: String,
    },
    /// The model's output for a text has no direction, so no unit vector can be made of it.
    #[error("text {index}: the model's vector {reason}; the weights are damaged or not meant for this use")]
    Vector {
        /// Position among the texts of the call.
        index: usize,
        /// `is not finite` or `has length zero`.
        reason: &'static str,
    },
    /// Late chunking makes one mean a chunk, and this model's vectors are made of more than one pooling.
    #[error("late chunking takes means; this model's vectors are several poolings side by side: use plain pooling")]
    LatePooling,
    /// Late chunking wants tokens that see the whole document, and this model's see what is before them alone.
    #[error(
        "late chunking needs tokens that see what follows them; this model's are causal (a decoder): use plain pooling"
    )]
    LateCausal,
    /// Late chunking wants tokens that see the whole document, and the rows of a table see nothing.
    #[error("late chunking needs tokens that see their document; a table's see nothing: use plain pooling")]
    LateTable,
    /// Late chunking cannot read windows of this size.
    #[error("{what} of {n_tokens} tokens: the encoder allows {} to {}", allowed.start(), allowed.end())]
    LateWindow {
        /// The setting asked for: `window` or `overlap`.
        what: &'static str,
        /// As asked for.
        n_tokens: usize,
        /// The sizes allowed.
        allowed: RangeInclusive<usize>,
    },
    /// The text to be read before each window of a document takes more than half of it.
    #[error("document {index}: a prefix of {n_tokens} tokens leaves too little of a window; at most {max} fit")]
    LatePrefix {
        /// Position among the documents of the call.
        index: usize,
        /// Tokens of the prompt and the prefix.
        n_tokens: usize,
        /// The most there may be.
        max: usize,
    },
    /// The bytes are not an embedding log of this version.
    #[error("embedding log: {reason}")]
    Log {
        /// The fault in the header.
        reason: String,
    },
    /// The vectors are not wanted any more, as the signal to stop said.
    #[error("stopped before all texts were embedded")]
    Cancelled,
    /// The computation failed on the device.
    #[error("the model could not be computed")]
    Compute(#[from] candle_core::Error),
    /// A file could not be read.
    #[error("{path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// A name of the kind of error that does not change.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

impl Error {
    /// True if the device's memory was full: less at a time may do.
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::Compute(error) => {
                // CUDA's and cuBLAS's names for it, and ours of GPUs; the tensor library hands a driver's errors on
                let error = format!("{error:?}");
                ["OUT_OF_MEMORY", "STATUS_ALLOC_FAILED", NO_MEMORY].iter().any(|name| error.contains(name))
            }
            _ => false,
        }
    }
}
