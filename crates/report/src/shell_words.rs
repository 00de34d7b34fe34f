//! Names in commands that can be pasted into a shell.

/// A name as a shell takes it for one word. An equals sign is plain behind an option, as in `--user=root`; in other words it
/// may make a variable of them.
pub fn quoted(name: &str) -> String {
    let is_option = name.starts_with("--");
    let is_plain =
        |c: char| c.is_alphanumeric() || "/._-+@:,".contains(c) || (c == '=' && is_option);
    if !name.is_empty() && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}
