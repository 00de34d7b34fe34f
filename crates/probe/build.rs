//! Compiles the BPF program that reads the kernel's tasks. Where that is not possible, memtide is built without it and
//! reads `/proc`; the reason is kept, for who asks at run time.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src/bpf/tasks.bpf.c");
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rustc-check-cfg=cfg(has_task_program)");
    match compile() {
        Ok(()) => println!("cargo::rustc-cfg=has_task_program"),
        Err(reason) => {
            println!("cargo::warning=memtide will read processes from /proc only: {reason}");
            println!("cargo::rustc-env=MEMTIDE_NO_TASK_PROGRAM={reason}");
        }
    }
}

/// Gives the reason in one line.
fn compile() -> Result<(), String> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let out = env::var_os("OUT_DIR").ok_or("cargo gave no OUT_DIR")?;
    let target = match env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() {
        Ok("big") => "bpfeb",
        _ => "bpfel",
    };
    let compiled = Command::new(&clang)
        // Debug information (the kernel's BTF is made of it) names the file as it is given here: by no machine's path.
        .current_dir("src/bpf")
        .args(["-O2", "-g", "-Wall", "-Werror", "-fdebug-compilation-dir=."])
        .args(["-target", target, "-c", "tasks.bpf.c", "-o"])
        .arg(PathBuf::from(out).join("tasks.bpf.o"))
        .output()
        .map_err(|error| format!("cannot run {clang}: {error}"))?;
    if compiled.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&compiled.stderr);
    let first = messages.lines().next().unwrap_or("no message");
    Err(format!("{clang} failed: {first}"))
}
