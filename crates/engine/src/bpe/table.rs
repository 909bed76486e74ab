//! The vocabulary of a byte-pair tokenizer as one block of bytes, which is looked up where it lies: a program that
//! starts builds nothing. The build script of this crate writes the blocks, with this very file.
//!
//! Layout, in words of 32 bits, little-endian: N, the number of tokens; N + 1 places at which tokens begin; the slots
//! of a hash table, each a rank + 1 or 0. Then the bytes of all tokens, by rank.

const WORD_BYTES: usize = 4;

/// A vocabulary: a token's rank is its place in the order of merging, and its id.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    starts: &'a [u8],
    slots: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Table<'a> {
    /// The vocabulary of a block that [`block`] made.
    pub(crate) fn open(block: &'a [u8]) -> Self {
        let n_tokens = word(block, 0) as usize;
        let (starts, rest) = block[WORD_BYTES..].split_at((n_tokens + 1) * WORD_BYTES);
        let (slots, bytes) = rest.split_at(n_slots(n_tokens) * WORD_BYTES);
        Self { starts, slots, bytes }
    }

    /// The rank of a token; none where these bytes are none.
    pub(crate) fn rank(&self, token: &[u8]) -> Option<u32> {
        let mask = self.slots.len() / WORD_BYTES - 1;
        let mut slot = hash(token) & mask;
        loop {
            let rank = word(self.slots, slot).checked_sub(1)?; // half of the slots are empty
            if self.token(rank) == token {
                return Some(rank);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// The bytes of a token; none where there is no such rank.
    #[allow(dead_code, reason = "the build script writes only")]
    pub(crate) fn bytes(&self, rank: u32) -> Option<&'a [u8]> {
        ((rank as usize) < self.starts.len() / WORD_BYTES - 1).then(|| self.token(rank))
    }

    fn token(&self, rank: u32) -> &'a [u8] {
        let place = |at: usize| word(self.starts, at) as usize;
        &self.bytes[place(rank as usize)..place(rank as usize + 1)]
    }
}

/// The block of a vocabulary, its tokens by rank.
#[allow(dead_code, reason = "only the build script writes")]
pub(crate) fn block(tokens: &[Vec<u8>]) -> Vec<u8> {
    let mut slots = vec![0_u32; n_slots(tokens.len())];
    let mask = slots.len() - 1;
    for (token, rank) in tokens.iter().zip(1..) {
        let mut slot = hash(token) & mask;
        while slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        slots[slot] = rank;
    }
    let mut end = 0;
    let ends = tokens.iter().map(|token| {
        end += token.len() as u32;
        end
    });
    let words = [tokens.len() as u32, 0].into_iter().chain(ends).chain(slots);
    let mut block: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    block.extend(tokens.iter().flatten());
    block
}

fn n_slots(n_tokens: usize) -> usize {
    (2 * n_tokens).next_power_of_two()
}

fn word(words: &[u8], at: usize) -> u32 {
    let bytes = &words[at * WORD_BYTES..(at + 1) * WORD_BYTES];
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// FNV-1a, both halves of it.
fn hash(bytes: &[u8]) -> usize {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ hash >> 32) as usize
}
