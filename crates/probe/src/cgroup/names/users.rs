//! Login names and home directories in `/etc/passwd`; users of other databases keep their numbers.

use std::collections::BTreeMap;

use timeline::cgroup::GroupNames;

use crate::kernel_file::Root;
use crate::text;

/// Reads the login names, and returns the home directory of each user.
pub(super) fn read(root: &Root, names: &mut GroupNames) -> BTreeMap<u32, String> {
    let passwd = root.read("/etc/passwd").unwrap_or_default();
    let mut homes = BTreeMap::new();
    for (_, line) in text::lines(&passwd) {
        let line = text::lossy(line);
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, _, _, home, ..] = fields[..] else {
            continue;
        };
        if let Ok(uid) = uid.parse() {
            names.users.entry(uid).or_insert_with(|| name.to_owned());
            homes.entry(uid).or_insert_with(|| home.to_owned());
        }
    }
    homes
}
