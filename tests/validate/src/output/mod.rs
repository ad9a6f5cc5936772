//! Making output: text, tables, JSON, and getting it out.

pub mod console;
pub mod json;
pub mod streams;
pub mod table;
pub mod text;
