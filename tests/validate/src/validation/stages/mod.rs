//! What each stage does. A stage takes back what it made, whatever failed in between,
//! and goes on with the next part where one is broken.

pub mod copy;
pub mod events;
pub mod memory;
pub mod queues;
pub mod registration;
pub mod sharing;
pub mod topology;
pub mod version;
