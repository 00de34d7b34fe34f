//! What is in a process's malloc heap? Read from outside, while it runs.
