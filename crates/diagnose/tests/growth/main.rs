//! Accuracy of the growth classifier on series that are made from how allocators behave, and what must not change it.

mod accuracy;
mod frame;
mod generator;
