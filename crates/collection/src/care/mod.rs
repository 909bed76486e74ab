//! Care: what a collection holds, whether it is whole, and how damage is mended.

pub mod status;
pub mod doctor;
pub mod repair;
