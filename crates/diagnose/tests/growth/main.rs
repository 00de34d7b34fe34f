//! Accuracy of the growth classifier on series that are made from how allocators behave, and what must not change it.
#![allow(clippy::print_stdout)] // the confusion matrix, for those who change the classifier

mod accuracy;
mod frame;
mod generator;
