//! Models behind endpoints.

mod encoder;
mod language_model;

use super::{Place, QuickFs};
