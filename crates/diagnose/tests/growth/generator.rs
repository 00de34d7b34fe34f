//! Makes series of a known class. A program's live size is drawn from a model of the program; the allocator's heap
//! follows its highest value so far, as glibc returns memory at its top only; total is what of it was touched, and a
//! constant of libraries. Live includes thread caches, as mallinfo2's does.

use std::ops::RangeInclusive;

use diagnose::growth::{GrowthClass, GrowthPoint, GrowthSeries};
use units::{Bytes, Quantity, Span};

/// A small generator of pseudo-random numbers (xorshift64*), equal on all machines.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.unit()
    }

    /// A number between two, each order of magnitude as likely.
    pub(crate) fn magnitude(&mut self, from: f64, to: f64) -> f64 {
        self.between(from.ln(), to.ln()).exp()
    }

    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// Normal noise.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Draws a program.
type MakesModel = fn(&mut Random) -> Model;

/// The kinds of series, and the class that each is.
pub(crate) const KINDS: [(&str, GrowthClass, MakesModel); 16] = [
    ("leak steady", GrowthClass::Leak, leak_steady),
    ("leak slow, noisy", GrowthClass::Leak, leak_noisy),
    ("leak threads", GrowthClass::Leak, leak_threads),
    ("leak bursty", GrowthClass::Leak, leak_bursty),
    ("leak under a season", GrowthClass::Leak, leak_seasonal),
    ("leak under a sawtooth", GrowthClass::Leak, leak_sawtooth),
    ("leak + fragmentation", GrowthClass::LeakAndFragmentation, leak_fragmenting),
    ("fragmentation", GrowthClass::Fragmentation, fragmentation),
    ("fragmentation, slow", GrowthClass::Fragmentation, fragmentation_slow),
    ("warm-up", GrowthClass::Warmup, warmup),
    ("pinned", GrowthClass::Pinned, pinned),
    ("sawtooth", GrowthClass::Stationary, sawtooth),
    ("seasonal, one day", GrowthClass::Seasonal, seasonal_once),
    ("seasonal", GrowthClass::Seasonal, seasonal),
    ("steps", GrowthClass::Steps, steps),
    ("flat", GrowthClass::Flat, flat),
];

/// What a program does, as shares of its size, at time 0 to 1.
pub(crate) struct Model {
    /// Live bytes.
    live: Box<dyn Fn(f64) -> f64>,
    /// Free bytes that stay in pieces.
    pieces: Box<dyn Fn(f64) -> f64>,
    /// The standard deviation of churn, as a share of the first live size, and how much of it a sample inherits.
    churn: f64,
    inherits: f64,
    /// The smallest number of samples that shows it.
    samples_min: f64,
}

impl Model {
    fn of(random: &mut Random, live: impl Fn(f64) -> f64 + 'static) -> Self {
        let churn = if random.chance(0.3) { 0.0 } else { random.magnitude(0.0005, 0.02) };
        Self {
            live: Box::new(live),
            pieces: Box::new(|_| 0.002),
            churn,
            inherits: if random.chance(0.5) { 0.0 } else { random.between(0.0, 0.8) },
            samples_min: 200.0,
        }
    }

    fn in_pieces(mut self, pieces: impl Fn(f64) -> f64 + 'static) -> Self {
        self.pieces = Box::new(pieces);
        self
    }
}

/// Rises to 1 with a time constant.
fn fills(t: f64, tau: f64) -> f64 {
    1.0 - (-t / tau).exp()
}

fn leak_steady(random: &mut Random) -> Model {
    let slope = random.magnitude(0.15, 8.0);
    Model::of(random, move |t| 1.0 + slope * t)
}

fn leak_noisy(random: &mut Random) -> Model {
    let slope = random.between(0.15, 0.5);
    let mut model = Model::of(random, move |t| 1.0 + slope * t);
    model.churn = slope * random.between(0.2, 0.6);
    model.inherits = random.between(0.0, 0.3);
    model.samples_min = 300.0;
    model
}

fn leak_threads(random: &mut Random) -> Model {
    let (slope, fill) = (random.magnitude(0.3, 6.0), random.between(0.0, 0.3));
    let tau = random.between(0.005, 0.03);
    Model::of(random, move |t| 1.0 + slope * t + fill * fills(t, tau))
        .in_pieces(move |t| 0.01 + 0.02 * slope * t)
}

fn leak_bursty(random: &mut Random) -> Model {
    let slope = random.magnitude(0.3, 6.0);
    let count = random.between(20.0, 80.0);
    let mut at = 0.0;
    let mut bursts = Vec::new();
    while at < 1.0 {
        at += random.between(0.2, 1.8) / count;
        bursts.push((at, slope / count * random.between(0.3, 1.7)));
    }
    Model::of(random, move |t| {
        1.0 + bursts.iter().take_while(|(at, _)| *at <= t).map(|(_, by)| by).sum::<f64>()
    })
}

fn leak_seasonal(random: &mut Random) -> Model {
    let slope = random.magnitude(0.3, 4.0);
    let height = slope * random.between(0.1, 0.4);
    let (cycles, phase) = (random.between(3.0, 12.0), random.unit());
    Model::of(random, move |t| {
        1.0 + slope * t + height * (1.0 + (std::f64::consts::TAU * (cycles * t + phase)).sin())
    })
}

fn leak_sawtooth(random: &mut Random) -> Model {
    let slope = random.magnitude(0.4, 4.0);
    let height = slope * random.between(0.2, 0.8);
    let (cycles, phase) = (random.between(8.0, 30.0), random.unit());
    Model::of(random, move |t| 1.0 + slope * t + height * (cycles * t + phase).fract())
}

fn leak_fragmenting(random: &mut Random) -> Model {
    let slope = random.between(0.25, 1.5);
    let (fill, tau) = (random.between(0.3, 2.0), random.between(0.01, 0.05));
    let (free, slow) = (random.between(0.35, 0.9), random.between(0.04, 0.3));
    let base = 0.3;
    Model::of(random, move |t| base + slope * t + fill * fills(t, tau))
        .in_pieces(move |t| free * (base + fill + slope * t) * fills(t, slow))
}

fn fragmentation(random: &mut Random) -> Model {
    let (fill, tau) = (random.between(0.0, 4.0), random.between(0.005, 0.04));
    let falls = random.between(-0.02, 0.1);
    let (free, slow) = (random.between(0.45, 1.0), random.between(0.04, 0.3));
    Model::of(random, move |t| (1.0 + fill * fills(t, tau)) * (1.0 - falls * t))
        .in_pieces(move |t| free * (1.0 + fill) * fills(t, slow))
}

fn fragmentation_slow(random: &mut Random) -> Model {
    let free = random.between(0.4, 1.2);
    let tau = random.between(0.02, 0.2);
    let size = (1.0 / tau).ln_1p();
    Model::of(random, |_| 1.0).in_pieces(move |t| free * (t / tau).ln_1p() / size)
}

fn warmup(random: &mut Random) -> Model {
    let (fill, tau) = (random.magnitude(0.3, 8.0), random.between(0.04, 0.3));
    Model::of(random, move |t| 1.0 + fill * fills(t, tau))
}

fn pinned(random: &mut Random) -> Model {
    let from = random.between(0.03, 0.4);
    let (ramp, stay) = (random.between(0.005, 0.1), random.between(0.02, 0.2));
    let height = random.between(0.8, 8.0);
    Model::of(random, move |t| {
        let load = ((t - from) / ramp).clamp(0.0, 1.0);
        1.0 + if t < from + ramp + stay { height * load } else { 0.0 }
    })
}

fn sawtooth(random: &mut Random) -> Model {
    let height = random.between(0.3, 2.0);
    let (cycles, phase) = (random.between(5.0, 25.0), random.unit());
    Model::of(random, move |t| 1.0 + height * (cycles * t + phase).fract())
}

fn seasonal_once(random: &mut Random) -> Model {
    let height = random.between(0.15, 0.5);
    let (cycles, phase) = (random.between(0.95, 1.8), random.unit());
    Model::of(random, move |t| 1.0 + height * (std::f64::consts::TAU * (cycles * t + phase)).sin())
}

fn seasonal(random: &mut Random) -> Model {
    let (height, second) = (random.between(0.15, 0.5), random.between(0.0, 0.25));
    let (cycles, phase) = (random.between(2.0, 14.0), random.unit());
    Model::of(random, move |t| {
        let turn = std::f64::consts::TAU * (cycles * t + phase);
        1.0 + height * (turn.sin() + second * (2.0 * turn).sin())
    })
}

fn steps(random: &mut Random) -> Model {
    let first = random.between(0.2, 0.6);
    let second = if random.chance(0.5) { random.between(first + 0.15, 0.9) } else { 2.0 };
    let (a, b) = (random.between(0.3, 2.0), random.between(0.3, 2.0));
    Model::of(random, move |t| {
        1.0 + if t > first { a } else { 0.0 } + if t > second { b } else { 0.0 }
    })
}

fn flat(random: &mut Random) -> Model {
    let fill = random.between(0.0, 0.02);
    let mut model = Model::of(random, move |t| 1.0 + fill * fills(t, 0.1));
    model.churn = if random.chance(0.3) { 0.0 } else { random.magnitude(0.001, 0.05) };
    model
}

/// The usual noise of half the series: a share of the size.
pub(crate) const NOISE: RangeInclusive<f64> = 0.0005..=0.01;

/// Draws the size, the clock and the noise of half the series, and samples a model.
pub(crate) fn series(
    random: &mut Random,
    model: &Model,
    noise: &RangeInclusive<f64>,
) -> GrowthSeries {
    let size = random.magnitude(5e6, 1e11);
    let count = random.magnitude(model.samples_min, 5000.0).round();
    let step = random.magnitude(1.0, 3600.0);
    let jitter = if random.chance(0.5) { 0.0 } else { random.between(0.0, 0.9) };
    let noise =
        if random.chance(0.5) { 0.0 } else { random.magnitude(*noise.start(), *noise.end()) };
    // Allocated memory that was never touched, and libraries.
    let touched = random.between(0.8, 1.0);
    let libraries = random.between(1e6, 1e7).min(size * 0.3);
    let start = (model.live)(0.0);
    let mut churn = 0.0;
    let mut highest = 0.0_f64;
    let mut points = Vec::new();
    let mut at = 0.0;
    while at < count {
        let t = at / count;
        let fresh = model.churn * start * (1.0 - model.inherits * model.inherits).sqrt();
        churn = churn * model.inherits + fresh * random.normal();
        let live = ((model.live)(t) + churn).max(0.05) * size;
        let pieces = (model.pieces)(t) * size;
        highest = highest.max(live);
        let free = pieces + (highest - live) * 0.97;
        let total = highest * touched + pieces + libraries;
        let mut measured = |value: f64| Bytes::from_f64(value * (1.0 + noise * random.normal()));
        points.push(GrowthPoint {
            at: Span::from_secs_f64(at * step),
            total: measured(total),
            live: Some(measured(live)),
            free: Some(measured(free)),
        });
        at += 1.0 + jitter * (random.unit() - 0.5);
    }
    GrowthSeries { points, ..GrowthSeries::default() }
}
