//! A process that asks for files that do not exist: the kernel remembers each answer.

use std::path::PathBuf;

/// Looks up names that are not there.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone)]
pub struct LookupPart {
    pub directory: PathBuf,
    /// How many names.
    pub names: u32,
}

impl LookupPart {
    /// Looks them up; reports how many are done, ten times.
    ///
    /// # Errors
    /// Where a name exists.
    pub fn run(&self, mut done: impl FnMut(u32)) -> std::io::Result<()> {
        let _ = rustix::thread::set_name(c"lookup");
        if !self.directory.is_dir() {
            return Err(std::io::Error::other("it is not a directory"));
        }
        let part = (self.names / 10).max(1);
        for number in 0..self.names {
            let name = self.directory.join(format!("no-such-file-{number:09}"));
            if name.try_exists()? {
                return Err(std::io::Error::other(format!("{} exists", name.display())));
            }
            if (number + 1) % part == 0 {
                done(number + 1);
            }
        }
        Ok(())
    }
}
