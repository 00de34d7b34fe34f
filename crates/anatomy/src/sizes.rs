//! What a part of a process's memory costs, in the terms of smaps, and how a mapping's cost is divided.

use probe::{SmapsBlock, SmapsField};
use units::Bytes;

/// Costs of a part. Sizes that the kernel does not print count as nothing here; [`Anatomy::absent`](crate::Anatomy)
/// names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartSizes {
    /// Address space, touched or not.
    pub virtual_size: Bytes,
    /// Resident.
    pub rss: Bytes,
    /// Resident, each page divided by the number of its users.
    pub pss: Bytes,
    /// Resident and mapped by this process alone: what its end would free.
    pub uss: Bytes,
    /// Resident and without a file, so that it can only go to swap.
    pub anonymous: Bytes,
    /// In swap.
    pub swap: Bytes,
    /// Of the resident pages, those in transparent huge pages.
    pub huge: Bytes,
    /// Of the resident pages, those that are locked.
    pub locked: Bytes,
    /// Pages of hugetlbfs, which are not in `rss`.
    pub hugetlb: Bytes,
}

impl PartSizes {
    /// The costs of a whole mapping.
    pub fn of(block: &SmapsBlock) -> Self {
        use SmapsField as F;
        let sum = |fields: &[F]| -> Bytes {
            let sizes = fields.iter().filter_map(|field| block.get(*field));
            sizes.sum()
        };
        Self {
            virtual_size: Bytes::new(block.mapping.size_bytes()),
            rss: sum(&[F::Rss]),
            pss: sum(&[F::Pss]),
            uss: sum(&[F::PrivateClean, F::PrivateDirty]),
            anonymous: sum(&[F::Anonymous]),
            swap: sum(&[F::Swap]),
            huge: sum(&[F::AnonHugePages, F::ShmemPmdMapped, F::FilePmdMapped]),
            locked: sum(&[F::Locked]),
            hugetlb: sum(&[F::SharedHugetlb, F::PrivateHugetlb]),
        }
    }

    /// Adds the costs of another part.
    pub fn add(&mut self, other: &Self) {
        for (own, other) in self.fields_mut().into_iter().zip(other.fields()) {
            *own += other;
        }
    }

    /// Takes a piece with this much address space, this many resident and swapped bytes out of a mapping, at most all
    /// of it. The other sizes of resident pages are divided in proportion; the piece and what stays add up exactly.
    pub fn take(&mut self, virtual_size: Bytes, resident: Bytes, swapped: Bytes) -> Self {
        let whole = *self;
        let rss = resident.min(whole.rss);
        let of = |size: Bytes| proportion(size, rss, whole.rss);
        let piece = Self {
            virtual_size: virtual_size.min(whole.virtual_size),
            rss,
            pss: of(whole.pss),
            uss: of(whole.uss),
            anonymous: of(whole.anonymous),
            swap: swapped.min(whole.swap),
            huge: of(whole.huge),
            locked: of(whole.locked),
            hugetlb: of(whole.hugetlb),
        };
        for (own, taken) in self.fields_mut().into_iter().zip(piece.fields()) {
            *own = own.saturating_sub(taken);
        }
        piece
    }

    /// Whether it costs nothing, not even address space.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn fields(&self) -> [Bytes; 9] {
        [
            self.virtual_size,
            self.rss,
            self.pss,
            self.uss,
            self.anonymous,
            self.swap,
            self.huge,
            self.locked,
            self.hugetlb,
        ]
    }

    fn fields_mut(&mut self) -> [&mut Bytes; 9] {
        [
            &mut self.virtual_size,
            &mut self.rss,
            &mut self.pss,
            &mut self.uss,
            &mut self.anonymous,
            &mut self.swap,
            &mut self.huge,
            &mut self.locked,
            &mut self.hugetlb,
        ]
    }
}

/// `size * part / whole`, rounded down; all of it for the whole.
fn proportion(size: Bytes, part: Bytes, whole: Bytes) -> Bytes {
    if part >= whole {
        return if whole == Bytes::ZERO { Bytes::ZERO } else { size };
    }
    let product = u128::from(size.get()) * u128::from(part.get()) / u128::from(whole.get());
    Bytes::new(u64::try_from(product).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_piece_takes_its_proportion_and_the_rest_stays() {
        let kib = Bytes::from_kib;
        let mut rest = PartSizes {
            virtual_size: kib(100),
            rss: kib(40),
            pss: kib(20),
            uss: kib(10),
            swap: kib(8),
            ..PartSizes::default()
        };
        let piece = rest.take(kib(50), kib(10), kib(3));
        assert_eq!((piece.rss, piece.pss, piece.swap), (kib(10), kib(5), kib(3)));
        assert_eq!((rest.rss, rest.pss, rest.swap), (kib(30), kib(15), kib(5)));
    }

    proptest! {
        #[test]
        fn pieces_add_up(sizes in prop::array::uniform5(0..1_u64 << 40), cuts: Vec<(u64, u64, u64)>) {
            let [virtual_size, rss, pss, swap, huge] = sizes.map(Bytes::new);
            let whole = PartSizes { virtual_size, rss, pss, swap, huge, ..PartSizes::default() };
            let mut rest = whole;
            let mut sum = PartSizes::default();
            for (size, resident, swapped) in cuts {
                sum.add(&rest.take(Bytes::new(size), Bytes::new(resident), Bytes::new(swapped)));
            }
            sum.add(&rest);
            prop_assert_eq!(sum, whole);
        }
    }
}
