//! Numbers, texts and bit sets as bytes: LEB128 varints, zigzag for signed steps, and bit sets without their zero
//! bytes. Reading never panics: missing bytes give `None`.

/// Appends a number as a varint: seven bits per byte, low bits first.
#[inline]
#[allow(clippy::cast_possible_truncation)] // Masked, or less than 128.
pub(super) fn put(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// Appends a difference, which is short if small, whatever its sign. Differences and sums wrap.
#[inline]
pub(super) fn put_step(into: &mut Vec<u8>, from: u64, to: u64) {
    let step = to.wrapping_sub(from).cast_signed();
    put(into, ((step << 1) ^ (step >> 63)).cast_unsigned());
}

/// Appends a text after its length.
pub(super) fn put_text(into: &mut Vec<u8>, text: &[u8]) {
    put(into, text.len() as u64);
    into.extend_from_slice(text);
}

/// Appends a set of up to 64 bits: a byte with a bit for each non-zero byte of the word, and those bytes.
#[inline]
pub(super) fn put_bits(into: &mut Vec<u8>, word: u64) {
    let at = into.len();
    into.push(0);
    let mut used = 0;
    for (i, byte) in word.to_le_bytes().into_iter().enumerate() {
        if byte != 0 {
            used |= 1 << i;
            into.push(byte);
        }
    }
    into[at] = used;
}

/// Returns the positions of a word's one bits, lowest first.
pub(super) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (word != 0).then_some(word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(place)
    })
}

/// Undoes [`put_step`]: returns the number from the one before and the zigzag difference.
#[inline]
fn stepped(from: u64, zigzag: u64) -> u64 {
    let step = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
    from.wrapping_add(step)
}

/// Bytes that are read from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteReader<'a>(pub(super) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    #[inline]
    pub(super) fn step(&mut self, from: u64) -> Option<u64> {
        Some(stepped(from, self.number()?))
    }

    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        self.take(len)
    }

    /// Reads a text as a string; invalid UTF-8 is replaced.
    pub(super) fn string(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.text()?).into_owned())
    }

    #[inline]
    pub(super) fn bits(&mut self) -> Option<u64> {
        let used = self.byte()?;
        let mut word = 0;
        for place in ones(u64::from(used)) {
            word |= u64::from(self.byte()?) << (8 * place);
        }
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_read_again(numbers: Vec<u64>, from: u64, to: u64, word: u64, text: Vec<u8>) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| put(&mut bytes, *number));
            put_step(&mut bytes, from, to);
            put_bits(&mut bytes, word);
            put_text(&mut bytes, &text);
            let mut input = ByteReader(&bytes);
            for number in &numbers {
                prop_assert_eq!(input.number(), Some(*number));
            }
            prop_assert_eq!(input.step(from), Some(to));
            prop_assert_eq!(input.bits(), Some(word));
            prop_assert_eq!(input.text(), Some(&text[..]));
            prop_assert!(input.is_empty());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let mut input = ByteReader(&bytes);
            while !input.is_empty() {
                let before = input.0.len();
                let _ = (input.number(), input.bits(), input.text());
                if input.0.len() == before {
                    break;
                }
            }
        }
    }

    #[test]
    fn small_steps_are_short_whatever_their_sign() {
        for (from, to, len) in
            [(5, 5, 1), (5, 4, 1), (0, u64::MAX, 1), (0, 64, 2), (0, 1 << 63, 10)]
        {
            let mut bytes = Vec::new();
            put_step(&mut bytes, from, to);
            assert_eq!(bytes.len(), len, "{from} {to}");
        }
    }
}
