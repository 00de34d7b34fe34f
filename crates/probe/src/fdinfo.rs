//! What the kernel says of an open file (`/proc/PID/fdinfo/FD`).

/// A field of `/proc/PID/fdinfo/FD`, which has one in each line: `map_id:\t31`.
pub fn field<'a>(fdinfo: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(fdinfo).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| *key == name)?;
    Some(value.trim())
}
