//! One small file for each command.

pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod growth;
pub(crate) mod headroom;
pub(crate) mod job;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod page;
pub(crate) mod profile;
pub(crate) mod record;
pub(crate) mod record_from;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod serve;
pub(crate) mod signals;
pub(crate) mod source;
pub(crate) mod top;
pub(crate) mod trial;
pub(crate) mod where_memory;
