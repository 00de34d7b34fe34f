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

/// Looks for the cgroup now and while it is not there, and passes it to the recorder, until this program ends.
pub(super) fn start(
    root: &Root,
    selector: GroupSelector,
    outbox: SyncSender<Message>,
) -> std::io::Result<()> {
    let root = root.clone();
    let thread = std::thread::Builder::new().stack_size(STACK);
    let work = move || {
        let mut known: Option<PathBuf> = None;
        loop {
            if !known.as_ref().is_some_and(|known| known.is_dir())
                && let Ok(key) = answers::find_group_of_this_host(&root, &selector)
                && let Some((_, mount)) = probe::memory_cgroup_mount(&root)
            {
                known = Some(mount.join(key.trim_start_matches('/')));
                if outbox.send(Message::Follow(key)).is_err() {
                    return;
                }
            }
            std::thread::sleep(EVERY);
        }
    };
    thread.name("memtide-follow".to_owned()).spawn(work)?;
    Ok(())
}
