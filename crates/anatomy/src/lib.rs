//! Whose is each part of a process's memory, and which allocators does it have?
