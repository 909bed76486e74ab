//! What a ranking is made of, and what stands beside it.

mod lexical;
mod links;
mod neighbors;
