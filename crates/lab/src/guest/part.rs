//! A part of a workload, as a process of its own.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

/// A running part of a workload; it is killed when dropped.
#[derive(Debug)]
pub struct Part {
    child: Child,
    /// As it was started.
    name: String,
}

impl Part {
    /// Starts a part by `spawn`, to work `stretch` times as long as it says; `output` is piped where somebody reads it.
    pub(super) fn start(
        part: &[&str],
        stretch: f64,
        output: Stdio,
        spawn: impl FnOnce(&mut Command) -> std::io::Result<Child>,
    ) -> Result<Self, String> {
        let name = part.join(" ");
        let mut command = Command::new("/proc/self/exe");
        let part = longer(part, stretch);
        command.arg("lab").args(part).arg("--in-scenario").stdin(Stdio::null()).stdout(output);
        let child = spawn(&mut command).map_err(|error| format!("cannot start {name}: {error}"))?;
        Ok(Self { child, name })
    }

    /// Its PID.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end; whether it ended by itself, and was not killed.
    ///
    /// # Errors
    /// Where it failed: it could not do its work.
    pub fn wait(self) -> Result<bool, String> {
        self.each(|_| Ok(()))
    }

    /// Reads each line of numbers that it prints, until it ends; whether it ended by itself, and was not killed.
    ///
    /// # Errors
    /// Where it failed, or that of the listener; the part is killed.
    pub fn each(
        mut self,
        mut line: impl FnMut(&[f64]) -> Result<(), String>,
    ) -> Result<bool, String> {
        if let Some(output) = self.child.stdout.take() {
            for text in BufReader::new(output).lines().map_while(Result::ok) {
                let words = text.split_whitespace();
                let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
                line(&numbers)?;
            }
        }
        let status = self.child.wait().map_err(|error| error.to_string())?;
        match (status.signal(), status.success()) {
            (Some(_), _) => Ok(false),
            (None, true) => Ok(true),
            (None, false) => Err(format!("{} failed: {status}", self.name)),
        }
    }

    /// Waits for the next line of numbers; none once it has ended.
    pub fn next_line(&mut self) -> Option<Vec<f64>> {
        let mut text = String::new();
        let mut byte = [0];
        let output = self.child.stdout.as_mut()?;
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

/// The arguments of a part that works this many times as long: the seconds of `--for 16s`.
fn longer(part: &[&str], stretch: f64) -> Vec<String> {
    let mut is_time = false;
    let argument = |text: &&str| {
        let seconds = text.strip_suffix('s').and_then(|text| text.parse::<f64>().ok());
        let is_stretched = std::mem::replace(&mut is_time, *text == "--for");
        match seconds.filter(|_| is_stretched) {
            Some(seconds) => format!("{}s", seconds * stretch),
            None => (*text).to_owned(),
        }
    };
    part.iter().map(argument).collect()
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::longer;

    #[test]
    fn only_the_time_of_work_is_longer() {
        let part = ["hog", "300M", "--fill", "6s", "--for", "30s", "--join", "/sys/fs/cgroup/app"];
        assert_eq!(longer(&part, 1.0), part);
        assert_eq!(longer(&part, 2.5)[3..6], ["6s", "--for", "75s"]);
    }
}
