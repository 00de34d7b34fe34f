//! Which cgroup a recorder reads with every sample: found by what was typed, and again where it is gone. A container that
//! is made again has another path.

use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use answers::GroupSelector;
use probe::Root;
use sampler::Message;

/// From one question whether it is there to the next: a listing of 2,000 cgroups takes 30 ms.
const EVERY: Duration = Duration::from_secs(30);
/// Bytes of stack; the deepest call parses a container's state file.
const STACK: usize = 512 << 10;

/// Passes the cgroup that was `found` to the recorder, and looks for it while it is not there, until this program ends.
pub(super) fn start(
    root: &Root,
    selector: GroupSelector,
    mut found: Option<String>,
    outbox: SyncSender<Message>,
) -> std::io::Result<()> {
    let root = root.clone();
    let thread = std::thread::Builder::new().stack_size(STACK);
    let work = move || {
        let mut directory: Option<PathBuf> = None;
        loop {
            if let Some(key) = found.take()
                && let Some((_, mount)) = probe::memory_cgroup_mount(&root)
            {
                directory = Some(mount.join(key.trim_start_matches('/')));
                if outbox.send(Message::Follow(key)).is_err() {
                    return;
                }
            }
            std::thread::sleep(EVERY);
            if !directory.as_ref().is_some_and(|directory| directory.is_dir()) {
                found = answers::find_group_of_this_host(&root, &selector).ok();
            }
        }
    };
    thread.name("memtide-follow".to_owned()).spawn(work)?;
    Ok(())
}
