//! The files of a collection: their layout, and how each is written and read.

pub mod layout;
pub mod names;
pub mod config;
pub mod calibration;
pub mod graph_health;
pub mod losses;
pub mod manifest;
pub mod table;
pub mod text;
pub mod metadata;
pub mod segment;
pub mod deletes;
pub mod files;
