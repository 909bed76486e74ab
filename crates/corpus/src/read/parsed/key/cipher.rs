//! AES over whole blocks, each alone or chained (CBC), as the formats of office programs have it; what a key may cost.

use aes::cipher::{Block, BlockCipherDecrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};

/// Hashes that a password costs, at most. Programs write 100,000; a file that asks for more than this wants time.
pub(super) const ROUNDS_MAX: u32 = 1_000_000;

/// The name of the parser in an error.
pub(super) const ENGINE: &str = "cento";

/// Bytes of a block of AES.
pub(super) const BLOCK_BYTES: usize = 16;

/// Decrypts whole blocks, each alone, or chained where a first block is given; none for a key or a length that no AES
/// has.
pub(super) fn decrypt(key: &[u8], first: Option<&[u8]>, content: &[u8]) -> Option<Vec<u8>> {
    fn blocks<C: BlockCipherDecrypt + KeyInit>(key: &[u8], content: &mut [u8]) -> Option<()> {
        let cipher = C::new_from_slice(key).ok()?;
        for bytes in content.chunks_exact_mut(BLOCK_BYTES) {
            let mut block = Block::<C>::try_from(&*bytes).ok()?;
            cipher.decrypt_block(&mut block);
            bytes.copy_from_slice(&block);
        }
        Some(())
    }
    if !content.len().is_multiple_of(BLOCK_BYTES) {
        return None;
    }
    let mut opened = content.to_vec();
    match key.len() {
        16 => blocks::<Aes128>(key, &mut opened)?,
        24 => blocks::<Aes192>(key, &mut opened)?,
        32 => blocks::<Aes256>(key, &mut opened)?,
        _ => return None,
    }
    if let Some(first) = first {
        let before = first.iter().chain(content);
        opened.iter_mut().zip(before).for_each(|(byte, before)| *byte ^= before);
    }
    Some(opened)
}
