//! Packing: chosen chunks become pieces in document order, and pieces become text a language model reads.
//!
//! Chunks of one document that touch are one piece; as spans partition a document, their texts are simply joined.
//! Unless another [`Order`] is asked for, documents stand in the order of their best chunk's score, pieces in the order
//! of the document, and what is left out between two pieces of a document is said where it is missing. The text of a
//! piece is exactly the bytes its citation names; what stands around it is in [`lean`] or, where full marks are asked
//! for, in [`markdown`] and [`xml`].

mod format;
mod marks;
mod piece;
mod order;
mod render;
pub(crate) mod markdown;
mod xml;
pub(crate) mod lean;
pub(crate) mod json;

pub use format::Format;
pub use marks::Marks;
pub use order::Order;
pub(crate) use piece::{Excerpt, FORMS, Form, Head, Piece, citations, in_document_order, pieces_of_document};
pub(crate) use render::{
    Layout, body, ending, footer, gap, header, mark, nothing_fits, nothing_relevant, omission, opening, render,
};
