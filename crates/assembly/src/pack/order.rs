//! The order in which pieces are delivered.

use super::piece::Piece;
use crate::named::named;
use crate::rank::greatest_first;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the pieces of a context stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Documents by their best chunk, pieces as they stand in the document, with marks of what is left out between
    /// them.
    #[default]
    Document,
    /// The most relevant piece first.
    Score,
    /// The most relevant pieces at the beginning and the end, the least relevant in the middle, which long contexts
    /// lose (Liu et al. 2023, "Lost in the Middle"): first, third, fifth … sixth, fourth, second.
    Edges,
}

impl Order {
    /// Puts pieces, which come in the order of documents, into this one. `score` is that of a piece's best chunk; equal
    /// ones stay as they come.
    pub(crate) fn arrange(self, mut pieces: Vec<Piece>, score: impl Fn(&Piece) -> f64) -> Vec<Piece> {
        if self == Self::Document {
            return pieces;
        }
        pieces.iter_mut().for_each(|piece| piece.omitted = 0);
        pieces.sort_by(|a, b| greatest_first(score(a), score(b)));
        if self == Self::Edges {
            let (mut front, mut back) = (Vec::new(), Vec::new());
            for (rank, piece) in pieces.into_iter().enumerate() {
                if rank % 2 == 0 { front.push(piece) } else { back.push(piece) }
            }
            front.extend(back.into_iter().rev());
            return front;
        }
        pieces
    }
}

named! {
    Order, "order":
    Document = "document",
    Score = "score",
    Edges = "edges",
}
