//! Mail in quoted-printable: `order=3D3`, and `=` at the end of a line that goes on.

use std::borrow::Cow;

/// The decoded text, with as many lines: a line that was broken stands where it began, and is followed by empty ones.
/// Texts in which `=` also stands for itself are left as they are.
pub(super) fn decode(text: Cow<'_, str>) -> Cow<'_, str> {
    if memchr::memmem::find(text.as_bytes(), b"=3D").is_none() || !is_encoded(&text) {
        return text;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut broken = 0;
    for line in text.lines() {
        let whole = line.trim_end();
        match whole.strip_suffix('=') {
            Some(front) => {
                push_decoded(front, &mut bytes);
                broken += 1;
            }
            None => {
                push_decoded(whole, &mut bytes);
                bytes.resize(bytes.len() + broken + 1, b'\n');
                broken = 0;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Whether most lines that have a `=` have it only as mail writes it.
fn is_encoded(text: &str) -> bool {
    let (mut encoded, mut other) = (0_usize, 0_usize);
    for line in text.lines().filter(|line| line.contains('=')) {
        let mut parts = line.trim_end().split('=');
        parts.next();
        let is_escape = |part: &str| part.is_empty() || hex(part.as_bytes()).is_some();
        let count = if parts.all(is_escape) { &mut encoded } else { &mut other };
        *count += 1;
    }
    encoded > other
}

fn hex(bytes: &[u8]) -> Option<u8> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    match bytes {
        [high, low, ..] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

fn push_decoded(line: &str, bytes: &mut Vec<u8>) {
    let mut parts = line.split('=');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        match hex(part.as_bytes()) {
            // An escaped line end ends no line here.
            Some(byte) => {
                bytes.push(if byte == b'\n' { b' ' } else { byte });
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'=');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_soft_breaks_of_mail_are_decoded() {
        let mail = "a=3D0xd0(GFP_N=\nOWARN), order=3D3\nTotal=09x\n";
        let decoded = decode(mail.into());
        assert_eq!(decoded, "a=0xd0(GFP_NOWARN), order=3\n\nTotal\tx\n");
    }

    #[test]
    fn text_with_equals_signs_of_its_own_stays() {
        for text in ["a=1 b=2\nu=http://x/?q=3D1&r=5\n", "a = 1\n", "=3D\nx=y\nz=q\n"] {
            assert_eq!(decode(text.into()), text);
        }
    }
}
