//! `kfd-validate info`: shows a machine.

pub mod as_json;
pub mod as_text;
pub mod description;
pub mod folding;
mod links;
