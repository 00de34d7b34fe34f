//! Errors of memory modules in the kernel's log: EDAC's counts, pages taken out of use.

use probe::text::SplitText as _;
use timeline::{KillNotice, Messenger, ModuleErrors, NoticeKind};

use super::phrase::{self, after};
use super::{NoticeLine, NoticeMessage};

pub(super) fn read(line: NoticeLine<'_>) -> Option<NoticeMessage> {
    let (errors, module) = edac(line.text).or_else(|| page(line.text))?;
    let mut notice = KillNotice::new(Messenger::Kernel, NoticeKind::Module);
    notice.target = phrase::name(module);
    notice.errors = errors;
    Some(NoticeMessage::Notice(notice))
}

/// `EDAC MC0: 4 CE error on CPU#0Channel#2_DIMM#0 (channel:2 slot:0 …)`, `EDAC MC0: 1 UE memory read error on …`
/// (drivers/edac/edac_mc.c): the errors and their module.
fn edac(text: &str) -> Option<(ModuleErrors, &str)> {
    let rest = after(text, "EDAC MC")?;
    let (controller, rest) = rest.around(": ")?;
    let (count, rest) = rest.split_once(' ')?;
    let count: u64 = count.parse().ok()?;
    controller.parse::<u16>().ok()?;
    let mut errors = ModuleErrors::default();
    match rest.split_once(' ')?.0 {
        "CE" => errors.corrected = count,
        "UE" => errors.uncorrected = count,
        _ => return None,
    }
    let module = after(rest, " on ").unwrap_or_default();
    let end = module.find(" (").unwrap_or(module.len());
    Some((errors, module.get(..end)?.trim()))
}

/// `Memory failure: 0x12345: recovery action for dirty LRU page: Recovered` and `MCE 0x12345: Killing app:812 due to hardware
/// memory corruption` (mm/memory-failure.c).
fn page(text: &str) -> Option<(ModuleErrors, &str)> {
    let is_page =
        text.contains("Memory failure: 0x") || text.contains("hardware memory corruption");
    let errors = ModuleErrors { uncorrected: 1, ..ModuleErrors::default() };
    is_page.then_some((errors, ""))
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};
    use timeline::NoticeKind;

    #[test]
    fn errors_are_counted_by_module() {
        let text = "kernel: EDAC MC0: 4 CE error on CPU#0Channel#2_DIMM#0 (channel:2 slot:0 page:0x0)\n\
                    kernel: EDAC MC0: 2 CE error on CPU#0Channel#2_DIMM#0 (channel:2 slot:0 page:0x0)\n\
                    kernel: EDAC MC1: 1 UE memory read error on mc#1memory#0 (channel:0)\n\
                    kernel: Memory failure: 0x7fe2d: recovery action for dirty LRU page: Recovered\n";
        let timeline = paste(text).timeline;
        let errors: Vec<_> = timeline
            .notices()
            .map(|noticed| &noticed.notice)
            .filter(|notice| notice.kind == NoticeKind::Module && !notice.ended_something())
            .map(|notice| {
                let errors = notice.errors;
                (notice.target.as_str(), errors.corrected, errors.uncorrected)
            })
            .collect();
        assert_eq!(
            errors,
            [
                ("CPU#0Channel#2_DIMM#0", 4, 0),
                ("CPU#0Channel#2_DIMM#0", 2, 0),
                ("mc#1memory#0", 0, 1),
                ("", 0, 1),
            ]
        );
        survives(text);
    }

    #[test]
    fn other_lines_of_edac_say_nothing_of_errors() {
        for text in ["EDAC MC: Ver: 3.0.0\n", "EDAC MC0: Giving out device to module skx_edac\n"] {
            assert!(paste(text).timeline.notices().next().is_none(), "{text}");
        }
    }
}
