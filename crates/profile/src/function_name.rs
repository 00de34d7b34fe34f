//! Names of kernel functions, without what compilers, tools and kernel versions add to them.

/// What compilers append when they split, specialise or clone a function; several may stand in a chain.
const CLONES: [&str; 6] = [".isra", ".constprop", ".part", ".llvm", ".cold", ".lto_priv"];

/// Returns a function's name without offset (`+0x1c/0x40`), module (` [ext4]`), annotations (`_[k]`), suffixes of compilers and
/// `_noprof` (since 6.10 allocation functions carry it).
pub(crate) fn plain_name(name: &str) -> &str {
    let name = name.trim();
    let name =
        ["_[k]", "_[i]", "_[j]"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let name = match name.rsplit_once(" [") {
        Some((before, module)) if module.ends_with(']') && !before.is_empty() => before.trim_end(),
        _ => name,
    };
    let mut name = without_offset(name);
    while let Some(shorter) = without_clone(name) {
        name = shorter;
    }
    name.strip_suffix("_noprof").filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// Without `+0x1c`, `+0x1c/0x40` (perf, `/proc/PID/stack`) or `+1560` (bpftrace).
fn without_offset(name: &str) -> &str {
    let Some((before, offset)) = name.rsplit_once('+') else {
        return name;
    };
    let is_offset = !before.is_empty()
        && offset.starts_with(|c: char| c.is_ascii_digit())
        && offset.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, 'x' | '/'));
    if is_offset { before } else { name }
}

/// Without the last suffix of a compiler, with or without its number.
fn without_clone(name: &str) -> Option<&str> {
    let unnumbered = match name.rsplit_once('.') {
        Some((before, number))
            if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            before
        }
        _ => name,
    };
    let shorter = CLONES.iter().find_map(|clone| unnumbered.strip_suffix(clone));
    shorter.filter(|shorter| !shorter.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_compilers_and_tools_add_is_cut() {
        for (name, plain) in [
            ("shrink_slab.part.49", "shrink_slab"),
            ("__alloc_pages_slowpath.constprop.0.isra.0", "__alloc_pages_slowpath"),
            ("finish_task_switch.isra.0", "finish_task_switch"),
            ("vma_alloc_folio_noprof", "vma_alloc_folio"),
            ("vma_alloc_folio_noprof+0x61", "vma_alloc_folio"),
            ("folio_wait_bit_common+0x13d/0x350", "folio_wait_bit_common"),
            ("__schedule+1560", "__schedule"),
            ("ext4_file_write [ext4]", "ext4_file_write"),
            ("ext4_file_write+0x1/0x2 [ext4]", "ext4_file_write"),
            ("do_syscall_64_[k]", "do_syscall_64"),
            ("do_madvise.part.0", "do_madvise"),
            ("[user]", "[user]"),
            ("operator+", "operator+"),
            (".cold", ".cold"),
            ("libruby-3.1.so.3.1.2", "libruby-3.1.so.3.1.2"),
        ] {
            assert_eq!(plain_name(name), plain, "{name}");
        }
    }
}
