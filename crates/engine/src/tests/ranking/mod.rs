//! What a ranking is made of, and what stands beside it.

mod authored;
mod lexical;
mod links;
mod neighbors;
mod phrases;
