//! Debian's kernels for the lab: downloaded by apt and unpacked into the user's cache, not installed. No root is needed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LabError;
use crate::error::AtPath as _;
use crate::host::kernel::{Kernel, kernel_directory};
use crate::host::work::WorkDirectory;

/// A kernel for virtual machines: small, with all that the lab needs as modules.
pub const USUAL_PACKAGE: &str = "linux-image-cloud-amd64";
/// The keys of Debian's archive; of package debian-archive-keyring.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const USUAL_MIRROR: &str = "http://deb.debian.org/debian/";

/// A kernel in the user's cache.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone)]
pub struct FetchedKernel {
    pub kernel: Kernel,
    /// Whether it was there before.
    pub was_there: bool,
}

/// Fetches the kernel of a package, of this system's own sources or of another suite of Debian. That of no suite becomes the
/// lab's default.
///
/// # Errors
/// [`LabError::NoApt`], [`LabError::Apt`] with its words, or [`LabError::File`].
pub fn fetch_kernel(package: &str, suite: Option<&str>) -> Result<FetchedKernel, LabError> {
    let kernels = kernel_directory().ok_or(LabError::NoCache)?;
    std::fs::create_dir_all(&kernels).at(&kernels)?;
    let work = WorkDirectory::below(&kernels)?;
    let mut apt = Apt::default();
    if let Some(suite) = suite {
        apt.of_suite(suite, work.path())?;
    }
    let package = apt.kernel_of(package)?;
    let place = kernels.join(&package);
    let was_there = place.is_dir();
    if !was_there {
        let unpacked = work.path().join("unpacked");
        std::fs::create_dir(&unpacked).at(&unpacked)?;
        apt.download(&package, work.path())?;
        unpack_all(work.path(), &unpacked)?;
        match std::fs::rename(&unpacked, &place) {
            // A fetch at the same time was faster.
            Err(_) if place.is_dir() => {}
            moved => moved.at(&place)?,
        }
    }
    if suite.is_none() {
        let default = kernels.join("default");
        let link = work.path().join("default");
        std::os::unix::fs::symlink(&package, &link).at(&link)?;
        std::fs::rename(&link, &default).at(&default)?;
    }
    Ok(FetchedKernel { kernel: Kernel::of_package(&place)?, was_there })
}

/// apt with the sources of this system, or with others.
#[derive(Debug, Default)]
struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// Takes packages from another suite of the mirror that this system uses. Lists of its own leave those of the system as
    /// they are.
    fn of_suite(&mut self, suite: &str, work: &Path) -> Result<(), LabError> {
        let mirror = self.mirror();
        for directory in ["lists/partial", "cache/archives/partial"] {
            let directory = work.join(directory);
            std::fs::create_dir_all(&directory).at(&directory)?;
        }
        let sources = work.join("sources.list");
        let line = format!("deb [arch=amd64 signed-by={KEYRING}] {mirror} {suite} main\n");
        std::fs::write(&sources, line).at(&sources)?;
        self.options = [
            format!("Dir::Etc::sourcelist={}", sources.display()),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={}", work.join("lists").display()),
            format!("Dir::Cache={}", work.join("cache").display()),
        ]
        .into();
        self.run("apt-get", &["update", "-qq", "--error-on=any"], work).map(drop)
    }

    /// The mirror of Debian in this system's sources.
    fn mirror(&self) -> String {
        let targets = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
        let uris = self.run("apt-get", &targets, Path::new("/")).unwrap_or_default();
        let mut uris = uris.lines().filter(|uri| uri.trim_end_matches('/').ends_with("/debian"));
        uris.next().unwrap_or(USUAL_MIRROR).to_owned()
    }

    /// A meta package depends on the package of one version; without such a dependency it is that package itself.
    fn kernel_of(&self, package: &str) -> Result<String, LabError> {
        let depends = self.depends(package)?;
        let is_version =
            |name: &&String| name.strip_prefix("linux-image-").is_some_and(begins_with_digit);
        Ok(depends.iter().find(is_version).cloned().unwrap_or_else(|| package.to_owned()))
    }

    /// Downloads a kernel into a directory. Since 7.0 image and modules are packages of their own.
    fn download(&self, package: &str, into: &Path) -> Result<(), LabError> {
        let is_part = |name: &&String| {
            ["linux-base-", "linux-binary-", "linux-modules-"]
                .iter()
                .any(|prefix| name.strip_prefix(prefix).is_some_and(begins_with_digit))
        };
        let mut packages = vec![package.to_owned()];
        packages.extend(self.depends(package)?.iter().filter(is_part).cloned());
        let binary = packages.iter().find(|name| name.starts_with("linux-binary-")).cloned();
        if let Some(binary) = binary {
            let parts = self.depends(&binary)?;
            packages.extend(parts.iter().filter(is_part).cloned());
        }
        packages.dedup();
        let arguments: Vec<&str> =
            ["download", "-qq"].into_iter().chain(packages.iter().map(String::as_str)).collect();
        self.run("apt-get", &arguments, into).map(drop)
    }

    /// The packages that a package depends on.
    fn depends(&self, package: &str) -> Result<Vec<String>, LabError> {
        let text = self.run("apt-cache", &["depends", package], Path::new("/"))?;
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(names.map(str::to_owned).collect())
    }

    fn run(&self, program: &str, arguments: &[&str], place: &Path) -> Result<String, LabError> {
        let options = self.options.iter().flat_map(|option| ["-o", option.as_str()]);
        // As root, apt would download as a user that may not write here.
        let options = ["-o", "APT::Sandbox::User=root"].into_iter().chain(options);
        let options: Vec<&str> = options.chain(arguments.iter().copied()).collect();
        run(program, &options, arguments, place)
    }
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Runs a program in a directory. An error names the arguments that are `shown`.
fn run(
    program: &str,
    arguments: &[&str],
    shown: &[&str],
    place: &Path,
) -> Result<String, LabError> {
    let made = Command::new(program).args(arguments).current_dir(place).env("LC_ALL", "C").output();
    let output = match made {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(LabError::NoApt { program: program.to_owned() });
        }
        made => made.at(Path::new(program))?,
    };
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let words = words.lines().filter_map(|line| line.strip_prefix("E: "));
        return Err(LabError::Apt {
            command: format!("{program} {}", shown.join(" ")),
            words: words.collect::<Vec<_>>().join("; "),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Unpacks each package of a directory.
fn unpack_all(packages: &Path, into: &Path) -> Result<(), LabError> {
    let entries = std::fs::read_dir(packages).at(packages)?;
    let mut archives: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    archives.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
    archives.sort();
    for archive in archives {
        let (archive, into) = (archive.to_string_lossy(), into.to_string_lossy());
        let arguments = ["-x", &*archive, &*into];
        run("dpkg-deb", &arguments, &arguments, packages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_or_is_missing_is_named_with_what_it_said() {
        let place = Path::new("/");
        let missing = run("memtide-no-such-program", &[], &[], place).unwrap_err();
        assert!(missing.to_string().contains("memtide-no-such-program"), "{missing}");
        let script = "echo 'E: Unable to locate package x' >&2; exit 100";
        let failed = run("sh", &["-c", script], &["download", "x"], place).unwrap_err();
        let says = failed.to_string();
        assert_eq!(says, "`sh download x` failed: Unable to locate package x");
    }
}
