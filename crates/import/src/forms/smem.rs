//! `smem -tw`: what the kernel and user space hold; and `smem` by process, with proportional shares.
//!
//! Of its sums these are single fields of `/proc/meminfo`: free memory, anonymous memory (user space, not cache), mapped
//! files (user space, cache). The kernel's cache is several fields in one and is not used. Sizes are KiB, or have a suffix
//! (`-k`); percentages (`-p`) are no sizes.

use timeline::Sample;
use timeline::signals::{MEM_ANON, MEM_FREE, MEM_MAPPED, MEM_TOTAL};

use super::fill::{self, KIB};
use super::{Block, Form, Reading};
use crate::figure::Figure;
use crate::looks::Look;

pub(super) const FORM: Form = Form { name: "smem", read };

/// The rows that add up to MemTotal; what lies outside (firmware, the kernel's image) is none of them.
const AREAS: [&str; 3] = ["kernel dynamic memory", "userspace memory", "free memory"];

fn read(reading: &mut Reading<'_>) -> Option<Block> {
    let header: Vec<&str> = reading.lines.first()?.split_whitespace().collect();
    if header != ["Area", "Used", "Cache", "Noncache"] {
        return None;
    }
    let mut look = Look::of(Sample::default());
    let mut used: Vec<Figure> = Vec::new();
    let mut lines = 1;
    for line in &reading.lines[1..] {
        let Some((area, figures)) = row(line) else {
            break;
        };
        lines += 1;
        let [sum, cache, other] = figures;
        match area {
            "free memory" => look.set_size(MEM_FREE.id(), sum, KIB),
            "userspace memory" => {
                look.set_size(MEM_MAPPED.id(), cache, KIB);
                look.set_size(MEM_ANON.id(), other, KIB);
            }
            _ => {}
        }
        if AREAS.contains(&area) {
            used.push(sum.in_bytes(KIB));
        }
    }
    if used.len() == AREAS.len() {
        let total = Figure {
            value: used.iter().map(|f| f.value).sum(),
            error: used.iter().map(|f| f.error).sum(),
            has_unit: true,
        };
        look.set_size(MEM_TOTAL.id(), total, 1.0);
        // Three figures of whole KiB are as exact as one.
        look.error_at_most.retain(|(_, error)| *error > 4096);
    }
    if used.is_empty() {
        return None;
    }
    let rest = &reading.lines[lines..];
    lines += rest.iter().take(2).take_while(|line| is_sum(line)).count();
    reading.look(look);
    Some(Block {
        what: "smem -w".to_owned(),
        lines,
        unit: "KiB",
        ..Block::default()
    })
}

/// `free memory    3121720    3121720          0`.
fn row(line: &str) -> Option<(&str, [Figure; 3])> {
    let mut words = line.split_whitespace().rev();
    let other = fill::figure(words.next()?)?;
    let cache = fill::figure(words.next()?)?;
    let used = fill::figure(words.next()?)?;
    let (area, _) = line.split_once(|c: char| c.is_ascii_digit())?;
    let area = area.trim();
    (!area.is_empty()).then_some((area, [used, cache, other]))
}

/// The line and the sums below the areas.
fn is_sum(line: &str) -> bool {
    line.starts_with("-----")
        || (!line.is_empty() && line.split_whitespace().all(|w| fill::figure(w).is_some()))
}

#[cfg(test)]
mod tests {
    use crate::testing::paste;
    use timeline::Entity;
    use timeline::signals::{MEM_ANON, MEM_FREE, MEM_MAPPED, MEM_TOTAL, PROC_PSS, PROC_SWAP};
    use units::Bytes;

    const WHOLE: &str = "\
Area                           Used      Cache   Noncache 
firmware/hardware                 0          0          0 
kernel image                      0          0          0 
kernel dynamic memory        551260     506304      44956 
userspace memory             385556     167180     218376 
free memory                 3121720    3121720          0 
----------------------------------------------------------
                            4058536    3795204     263332 
";

    #[test]
    fn areas_become_the_fields_that_they_are() {
        let opened = paste(WHOLE);
        let timeline = &opened.timeline;
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(3_121_720)));
        assert_eq!(timeline.last(MEM_ANON), Some(Bytes::from_kib(218_376)));
        assert_eq!(timeline.last(MEM_MAPPED), Some(Bytes::from_kib(167_180)));
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(4_058_536)));
        assert_eq!(timeline.rounded_signals().count(), 0);
        assert_eq!(opened.inputs[0].last_line, 8);
        let cut = paste(&WHOLE.replace("kernel dynamic", "other")).timeline;
        assert_eq!(cut.last(MEM_TOTAL), None, "a sum without a part is none");
    }

    #[test]
    fn suffixes_and_percentages_are_told_apart() {
        let text = "Area Used Cache Noncache\nkernel dynamic memory 538.3M 494.4M 43.9M\nuserspace memory 376.5M 163.3M 213.3M\nfree memory 3.0G 3.0G 0\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_gib(3)));
        assert!(timeline.rounded_signals().any(|id| id == MEM_TOTAL.id()));
        let percent = "Area Used Cache Noncache\nuserspace memory 9.50% 4.12% 5.38%\nfree memory 76.92% 76.92% 0.00%\n";
        assert!(paste(percent).timeline.is_empty());
    }

    #[test]
    fn processes_have_proportional_shares() {
        let text = "\
  PID User     Command                         Swap      USS      PSS      RSS 
 1234 jan      /usr/lib/firefox/firefox -n         4   163372   181290   254896 
-------------------------------------------------------------------------------
    1 1                                            4   163372   181290   254896 
";
        let timeline = paste(text).timeline;
        let series = timeline.entity(Entity::Process, "1234@0").unwrap();
        assert_eq!(
            timeline.last_of(series, PROC_PSS),
            Some(Bytes::from_kib(181_290))
        );
        assert_eq!(
            timeline.last_of(series, PROC_SWAP),
            Some(Bytes::from_kib(4))
        );
        assert_eq!(series.label, "firefox");
        assert_eq!(
            timeline.entities(Entity::Process).count(),
            1,
            "the sum is no process"
        );
    }
}
