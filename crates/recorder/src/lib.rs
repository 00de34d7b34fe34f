//! The sampling loop of `memtide record`: takes samples on the beat and hands them to the store.
//!
//! Three nouns: a **recorder** ([`Recorder`]) samples until it is told to stop; its **settings** ([`Settings`]) say how
//! often and how much; its **health** ([`Health`]) is what others may know of it while it runs. It never waits for a
//! disk, for another process's lock or for another thread, and in steady state it allocates nothing.

mod allowance;
mod control;
mod details;
mod facts_watch;
mod health;
mod housekeeper;
mod kernel_log;
mod notes;
mod own_cost;
mod own_pages;
mod pace;
pub mod privilege;
mod processes;
mod run;
mod services;
mod settings;
pub mod status;

pub use control::{Control, INBOX, Message};
pub use health::{Figures, Health};
pub use housekeeper::{Housekeeper, Kept};
pub use run::Recorder;
pub use settings::Settings;
