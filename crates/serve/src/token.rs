//! The secret that a client must know, read from a file that only its owner can read.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// A shorter secret can be guessed: an engineering choice, 16 characters of base64 are 96 bits.
const LENGTH_MIN: usize = 16;
/// A longer file is not a secret.
const LENGTH_MAX: usize = 1024;

/// A secret that clients must know. It keeps no copy of it, only a digest.
pub struct AccessToken {
    digest: [u8; 32],
    /// What a browser keeps after a login: nobody makes it without the secret, and it ends with the server.
    cookie: String,
}

// A digest helps nobody who reads a log.
impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccessToken(..)")
    }
}

/// Why a file is not taken as a secret.
// The message of a variant says what its fields are.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("cannot read the token file {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// Others can read it.
    #[error("the token file {} can be read by others than its owner (mode {:03o})", .path.display(), .mode)]
    Readable { path: PathBuf, mode: u32 },
    /// It belongs to another user.
    #[error("the token file {} belongs to user {}, not to the one who runs memtide", .path.display(), .owner)]
    Foreign { path: PathBuf, owner: u32 },
    /// It is too short to be a secret.
    #[error("the token in {} has {} characters: fewer than {LENGTH_MIN} can be guessed", .path.display(), .length)]
    Short { path: PathBuf, length: usize },
    /// It is no line of text.
    #[error("the token file {} is not one line of printable ASCII characters without spaces", .0.display())]
    NoLine(PathBuf),
}

impl TokenError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Readable { path, .. } => Some(format!("chmod 600 {}", path.display())),
            Self::Short { path, .. } | Self::NoLine(path) => Some(format!(
                "make one: (umask 077; head -c 24 /dev/urandom | base64 > {})",
                path.display()
            )),
            Self::Read { .. } | Self::Foreign { .. } => None,
        }
    }
}

impl AccessToken {
    /// Reads a secret from a file of this user, or of root, which nobody else can read.
    ///
    /// # Errors
    /// [`TokenError`] says what is wrong with the file.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        // Of the open file: what its name leads to may change.
        let found = file.metadata().map_err(failed)?;
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(TokenError::Readable { path: path.to_owned(), mode });
        }
        let owner = found.uid();
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            return Err(TokenError::Foreign { path: path.to_owned(), owner });
        }
        let mut text = Vec::new();
        file.take(LENGTH_MAX as u64 + 1).read_to_end(&mut text).map_err(failed)?;
        let line = text.trim_ascii();
        if line.len() > LENGTH_MAX || !line.iter().all(u8::is_ascii_graphic) {
            return Err(TokenError::NoLine(path.to_owned()));
        }
        if line.len() < LENGTH_MIN {
            return Err(TokenError::Short { path: path.to_owned(), length: line.len() });
        }
        Ok(Self::of(line, &random().map_err(failed)?))
    }

    fn of(secret: &[u8], salt: &[u8]) -> Self {
        let cookie =
            Sha256::new().chain_update(salt).chain_update(b"memtide login").chain_update(secret);
        Self { digest: Sha256::digest(secret).into(), cookie: HEXLOWER.encode(&cookie.finalize()) }
    }

    /// Whether this is the secret. It takes as long whatever is wrong with it: digests are compared, and all of them.
    pub(crate) fn is(&self, typed: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(typed).into();
        is_same(&self.digest, &digest)
    }

    /// Whether this is what a browser got after it had sent the secret.
    pub(crate) fn is_cookie(&self, sent: &str) -> bool {
        let (mine, sent) =
            (Sha256::digest(self.cookie.as_bytes()), Sha256::digest(sent.as_bytes()));
        is_same(&mine, &sent)
    }

    /// What a browser keeps.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }
}

fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differs =
        a.iter().zip(b).fold(0, |differs, (a, b)| std::hint::black_box(differs | (a ^ b)));
    a.len() == b.len() && differs == 0
}

/// Bytes that nobody can guess; so few come at once or not at all.
fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(
        text: &[u8],
        mode: u32,
    ) -> (tempfile::NamedTempFile, Result<AccessToken, TokenError>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let read = AccessToken::read(file.path());
        (file, read)
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_what_to_do() {
        for mode in [0o644, 0o640, 0o604, 0o660] {
            let (_file, read) = written(b"0123456789abcdef\n", mode);
            let error = read.unwrap_err();
            assert!(matches!(&error, TokenError::Readable { .. }), "{error}");
            assert!(error.help().unwrap().starts_with("chmod 600 "));
        }
        let (_file, read) = written(b"0123456789abcdef\n", 0o600);
        let token = read.unwrap();
        assert!(token.is(b"0123456789abcdef") && !token.is(b"0123456789abcdeg") && !token.is(b""));
        assert!(
            token.is_cookie(token.cookie())
                && !token.is_cookie("")
                && !token.is_cookie("0123456789abcdef")
        );
    }

    #[test]
    fn a_secret_is_one_line_of_some_length() {
        assert!(matches!(written(b"short\n", 0o600).1, Err(TokenError::Short { length: 5, .. })));
        assert!(matches!(written(b"", 0o600).1, Err(TokenError::Short { length: 0, .. })));
        assert!(matches!(written(b"two words of sixteen\n", 0o600).1, Err(TokenError::NoLine(_))));
        assert!(matches!(written(&[b'a'; 5000], 0o600).1, Err(TokenError::NoLine(_))));
    }

    #[test]
    fn a_cookie_of_another_server_is_none_here() {
        let (one, other) = (AccessToken::of(b"secret", b"a"), AccessToken::of(b"secret", b"b"));
        assert!(!one.is_cookie(other.cookie()));
    }
}
