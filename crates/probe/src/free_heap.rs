//! Heap of this process that it has freed, and its allocator keeps.

/// Returns freed heap to the kernel: an allocator keeps it, as the program may need it again. Takes about a millisecond.
#[allow(unsafe_code)]
pub fn give_back_free_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, and only gives free memory back to the kernel.
    unsafe {
        libc::malloc_trim(0);
    }
}
