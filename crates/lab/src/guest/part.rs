//! A part of a workload, as a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A running part of a workload; it is killed when dropped.
#[derive(Debug)]
pub struct Part(Child);

impl Part {
    pub(super) fn start(part: &[&str]) -> Result<Self, String> {
        let child = Command::new("/proc/self/exe")
            .arg("lab")
            .args(part)
            .arg("--numbers")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", part.join(" ")))?;
        Ok(Self(child))
    }

    /// Waits for its end; whether it ended well.
    pub fn wait(self) -> bool {
        self.each(|_| Ok(())).unwrap_or(false)
    }

    /// Hears each line of numbers that it prints, until it ends; whether it ended well.
    ///
    /// # Errors
    /// That of the listener; the part is killed.
    pub fn each(
        mut self,
        mut line: impl FnMut(&[f64]) -> Result<(), String>,
    ) -> Result<bool, String> {
        if let Some(output) = self.0.stdout.take() {
            for text in BufReader::new(output).lines().map_while(Result::ok) {
                let words = text.split_whitespace();
                let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
                line(&numbers)?;
            }
        }
        Ok(self.0.wait().is_ok_and(|status| status.success()))
    }

    /// Waits for the next line of numbers; none once it has ended.
    pub fn next_line(&mut self) -> Option<Vec<f64>> {
        let mut text = String::new();
        let mut byte = [0];
        let output = self.0.stdout.as_mut()?;
        while std::io::Read::read(output, &mut byte).ok()? == 1 {
            if byte == *b"\n" {
                let words = text.split_whitespace();
                return Some(words.filter_map(|word| word.parse().ok()).collect());
            }
            text.push(char::from(byte[0]));
        }
        None
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
