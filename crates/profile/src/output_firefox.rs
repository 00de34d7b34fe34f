//! Writes a profile in the Firefox Profiler's format, for <https://profiler.firefox.com> and samply: a thread for each name, its
//! functions coloured by what they mean, below a root that names the reason.

use std::collections::BTreeMap;
use std::time::Duration;

use fxprof_processed_profile::{
    CategoryColor, CpuDelta, Frame, FrameFlags, FrameInfo, Profile as FirefoxProfile,
    ReferenceTimestamp, SamplingInterval, Timestamp,
};

use crate::classify::classify;
use crate::collected::{Profile, ProfilePart};
use crate::reason::ReasonGroup;
use crate::stack::Stack;

/// Returns a part as JSON; of waits, a sample is a millisecond. Empty where it was not measured.
///
/// # Errors
/// None in practice: it is written to memory.
pub fn firefox(profile: &Profile, part: ProfilePart) -> Result<String, serde_json::Error> {
    let origin = &profile.origin;
    let Some((stacks, are_waits)) = profile.part(part) else {
        return Ok(String::new());
    };
    let per_sample = if are_waits { 1e-3 } else { 1.0 };
    let hz = origin.hz.filter(|hz| *hz >= 1.0 && !are_waits).unwrap_or(1000.0);
    let interval = Duration::from_secs_f64(1.0 / hz);
    let begun = Duration::from_secs_f64(origin.unix_time_s.unwrap_or(0.0).max(0.0));
    let mut firefox = FirefoxProfile::new(
        "memtide profile",
        ReferenceTimestamp::from_duration_since_unix_epoch(begun),
        SamplingInterval::from_nanos(u64::try_from(interval.as_nanos()).unwrap_or(1)),
    );
    let categories = ReasonGroup::ALL.map(|group| {
        let colour = match group {
            ReasonGroup::Trouble => CategoryColor::Red,
            ReasonGroup::PriceOfASetting => CategoryColor::Orange,
            ReasonGroup::Ordinary => CategoryColor::Green,
            ReasonGroup::NotMemory => CategoryColor::Gray,
        };
        (group, firefox.add_category(group.label(), colour))
    });
    let process = firefox.add_process(
        origin.files.first().map_or(origin.form.as_str(), String::as_str),
        0,
        Timestamp::from_millis_since_reference(0.0),
    );
    let mut by_name: BTreeMap<&str, Vec<(&Stack, f64)>> = BTreeMap::new();
    for (stack, weight) in stacks.sorted() {
        by_name.entry(&stack.comm).or_default().push((stack, weight));
    }
    for (number, (comm, stacks)) in (1_u32..).zip(by_name) {
        let start = Timestamp::from_millis_since_reference(0.0);
        let thread = firefox.add_thread(process, number, start, false);
        firefox.set_thread_name(thread, &timeline::plain::escape(comm));
        let mut at = Duration::ZERO;
        for (stack, weight) in stacks {
            let class = classify(stack);
            let group = class.reason.group();
            let category = categories.iter().find(|(known, _)| *known == group);
            let category = category.map_or(categories[3].1, |(_, handle)| *handle);
            let names = std::iter::once(class.reason.label())
                .chain(stack.frames.iter().map(|frame| &*frame.name));
            let names: Vec<_> =
                names.map(|name| firefox.intern_string(&timeline::plain::escape(name))).collect();
            let frames = names.into_iter().map(|name| FrameInfo {
                frame: Frame::Label(name),
                category_pair: category.into(),
                flags: FrameFlags::empty(),
            });
            let handle = firefox.intern_stack_frames(thread, frames);
            // How often a stack was seen, not when: one sample with its weight.
            #[allow(clippy::cast_possible_truncation)] // saturates
            let count = (weight / per_sample).round() as i32;
            let lasts = interval.saturating_mul(count.unsigned_abs());
            let nanos = |of: Duration| u64::try_from(of.as_nanos()).unwrap_or(u64::MAX);
            // The reader takes CPU time for that since the sample before, so a sample stands at its end.
            at += lasts;
            let time = Timestamp::from_nanos_since_reference(nanos(at));
            firefox.add_sample(thread, time, handle, CpuDelta::from_nanos(nanos(lasts)), count);
        }
    }
    serde_json::to_string(&firefox)
}
