//! The recorder from kernel files to a recording that is read again.

mod fake;
mod limit_hits;
mod looks;
mod loop_of_samples;
mod run_in_cgroup;
mod steady_state;
