//! The canonical texts of a segment: one stream of bytes, compressed in blocks, read by byte range.
//!
//! Documents follow each other without a gap; a document knows where its text starts. A read decompresses only the
//! blocks it touches. Layout of the payload: LZ4 blocks of [`BLOCK_BYTES`] text each, then the offset of each block
//! (u64). A damaged byte costs the documents in a block or two, so blocks are small. The kind of the file says how
//! small; those of 64 KiB that were written before are read as well.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use cento_vector::file;

use crate::error::{AtPath, Error, Result};
use crate::fs::{File, Folder, Fs};

/// Text per compressed block.
pub const BLOCK_BYTES: usize = 8 * 1024;
const KIND: [u8; 8] = *b"text8k\0\0";

/// Text per compressed block of older files.
const OLD_BLOCK_BYTES: usize = 64 * 1024;
const OLD_KIND: [u8; 8] = *b"text\0\0\0\0";

/// Takes texts one after the other and writes full blocks as they come.
pub struct TextWriter {
    out: file::Writer<Box<dyn File>>,
    path: PathBuf,
    pending: Vec<u8>,
    offsets: Vec<u64>,
    block_bytes: usize,
    n_written: u64,
    n_text: u64,
}

impl TextWriter {
    /// Starts the file.
    pub fn create(fs: &dyn Fs, path: &Path) -> Result<Self> {
        Self::with_blocks(fs, path, KIND, BLOCK_BYTES)
    }

    fn with_blocks(fs: &dyn Fs, path: &Path, kind: [u8; 8], block_bytes: usize) -> Result<Self> {
        let out = file::Writer::new(fs.create(path).at(path)?, kind).at(path)?;
        let (pending, offsets) = (Vec::new(), Vec::new());
        Ok(Self { out, path: path.to_owned(), pending, offsets, block_bytes, n_written: 0, n_text: 0 })
    }

    /// Appends a document's text and says where it starts.
    pub fn push(&mut self, text: &str) -> Result<u64> {
        let start = self.n_text;
        self.n_text += text.len() as u64;
        self.pending.extend_from_slice(text.as_bytes());
        let n_full = self.pending.len() / self.block_bytes * self.block_bytes;
        for block in self.pending[..n_full].chunks(self.block_bytes) {
            write_block(&mut self.out, block, &mut self.offsets, &mut self.n_written).at(&self.path)?;
        }
        self.pending.drain(..n_full);
        Ok(start)
    }

    /// Writes the last block and the offsets, and syncs the file.
    pub fn finish(mut self) -> Result<()> {
        if !self.pending.is_empty() {
            write_block(&mut self.out, &self.pending, &mut self.offsets, &mut self.n_written).at(&self.path)?;
        }
        self.out.write_all(bytemuck::cast_slice(&self.offsets)).at(&self.path)?;
        let mut file = self.out.finish([self.offsets.len() as u64, self.n_text]).at(&self.path)?;
        file.sync().at(&self.path)
    }
}

fn write_block(out: &mut impl Write, block: &[u8], offsets: &mut Vec<u64>, n_written: &mut u64) -> std::io::Result<()> {
    let compressed = lz4_flex::block::compress(block);
    out.write_all(&compressed)?;
    offsets.push(*n_written);
    *n_written += compressed.len() as u64;
    Ok(())
}

/// The texts of a segment, opened by memory map.
#[derive(Debug, Clone)]
pub struct Texts {
    mapped: file::Mapped,
    block_bytes: u64,
    n_blocks: usize,
    n_text: u64,
    offsets_start: usize,
}

impl Texts {
    /// Opens the texts of a segment.
    pub fn open(folder: &Folder, name: &str) -> Result<Self> {
        let mapped = folder.map(name, &[KIND, OLD_KIND])?;
        let block_bytes = if mapped.kind() == KIND { BLOCK_BYTES } else { OLD_BLOCK_BYTES } as u64;
        let [n_blocks, n_text] = mapped.counts();
        let offsets_start =
            usize::try_from(n_blocks).ok().and_then(|n| n.checked_mul(8)).and_then(|n| mapped.len().checked_sub(n));
        match offsets_start {
            Some(offsets_start) if n_blocks == n_text.div_ceil(block_bytes) => {
                Ok(Self { block_bytes, n_blocks: n_blocks as usize, n_text, offsets_start, mapped })
            }
            _ => {
                let reason = "counts do not fit the length".to_owned();
                Err(Error::Corrupt { path: mapped.path().to_owned(), reason })
            }
        }
    }

    /// The mapped file itself.
    pub(crate) fn file(&self) -> &file::Mapped {
        &self.mapped
    }

    /// Bytes of all texts.
    pub fn n_bytes(&self) -> u64 {
        self.n_text
    }

    /// The text of a byte range of the stream.
    pub fn read(&self, range: Range<u64>) -> Result<String> {
        self.reader().read(range)
    }

    /// Reads several ranges; cheap if they come in the order of the stream.
    pub fn reader(&self) -> TextReader<'_> {
        TextReader { texts: self, open: None }
    }

    fn block(&self, block: usize) -> Result<Vec<u8>> {
        let start = self.offset(block)?;
        let end = if block + 1 == self.n_blocks { self.offsets_start } else { self.offset(block + 1)? };
        if start > end || end > self.offsets_start {
            return Err(self.corrupt("block offsets do not ascend"));
        }
        let n_bytes = (self.n_text - block as u64 * self.block_bytes).min(self.block_bytes) as usize;
        let bytes = lz4_flex::block::decompress(self.mapped.bytes(start..end)?, n_bytes)
            .map_err(|_| self.corrupt("a block does not decompress"))?;
        if bytes.len() != n_bytes {
            return Err(self.corrupt("a block has another length"));
        }
        Ok(bytes)
    }

    fn offset(&self, block: usize) -> Result<usize> {
        let at = self.offsets_start + block * 8;
        let bytes = self.mapped.bytes(at..at + 8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes were asked for")) as usize)
    }

    /// Checks every block of the file.
    pub fn verify(&self) -> Result<()> {
        Ok(self.mapped.verify()?)
    }

    fn corrupt(&self, reason: &str) -> Error {
        Error::Corrupt { path: self.mapped.path().to_owned(), reason: reason.to_owned() }
    }
}

/// Reads ranges of the stream and keeps the block it decompressed last.
pub struct TextReader<'t> {
    texts: &'t Texts,
    open: Option<(usize, Vec<u8>)>,
}

impl TextReader<'_> {
    /// The text of a range of bytes.
    pub fn read(&mut self, range: Range<u64>) -> Result<String> {
        if range.start > range.end || range.end > self.texts.n_text {
            return Err(self.texts.corrupt("a text lies outside the file"));
        }
        let mut text = Vec::with_capacity((range.end - range.start) as usize);
        let mut at = range.start;
        while at < range.end {
            let block = (at / self.texts.block_bytes) as usize;
            let block_start = block as u64 * self.texts.block_bytes;
            let bytes = self.block(block)?;
            let end = (range.end - block_start).min(bytes.len() as u64) as usize;
            text.extend_from_slice(&bytes[(at - block_start) as usize..end]);
            at = block_start + end as u64;
        }
        String::from_utf8(text).map_err(|_| self.texts.corrupt("a text is not UTF-8"))
    }

    fn block(&mut self, block: usize) -> Result<&[u8]> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != block) {
            self.open = Some((block, self.texts.block(block)?));
        }
        Ok(&self.open.as_ref().expect("opened above").1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fs::OsFs;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn any_range_of_any_texts_reads_back(texts in prop::collection::vec("[a-zé]{0,40000}", 0..8), cuts in prop::collection::vec(0.0..1.0f64, 6), is_old: bool) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("texts");
            let mut writer = match is_old {
                true => TextWriter::with_blocks(&OsFs, &path, OLD_KIND, OLD_BLOCK_BYTES).unwrap(),
                false => TextWriter::create(&OsFs, &path).unwrap(),
            };
            let starts: Vec<u64> = texts.iter().map(|text| writer.push(text).unwrap()).collect();
            writer.finish().unwrap();
            let stored = Texts::open(&Folder::open(folder.path()).unwrap(), "texts").unwrap();
            let mut reader = stored.reader();
            for (text, start) in texts.iter().zip(starts) {
                for cut in &cuts {
                    let from = (0..=(text.len() as f64 * cut) as usize).rfind(|&at| text.is_char_boundary(at)).unwrap();
                    let range = start + from as u64..start + text.len() as u64;
                    prop_assert_eq!(reader.read(range.clone()).unwrap(), &text[from..]);
                    prop_assert_eq!(stored.read(range).unwrap(), &text[from..]);
                }
            }
            let n_text: usize = texts.iter().map(String::len).sum();
            prop_assert!(stored.read(0..n_text as u64 + 1).is_err());
        }
    }

    #[test]
    fn a_damaged_byte_costs_the_documents_in_two_blocks_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("texts");
        let mut random = 1_u64;
        let mut word = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:x} ", random >> 44)
        };
        let texts: Vec<String> = (0..600).map(|_| (0..60).map(|_| word()).collect()).collect();
        let mut writer = TextWriter::create(&OsFs, &path).unwrap();
        let starts: Vec<u64> = texts.iter().map(|text| writer.push(text).unwrap()).collect();
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut worst = 0;
        for at in (100..bytes.len() - 2 * 4096).step_by(4096) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            let stored = Texts::open(&Folder::open(folder.path()).unwrap(), "texts").unwrap();
            let is_lost = |(text, &start): (&String, &u64)| stored.read(start..start + text.len() as u64).is_err();
            worst = worst.max(texts.iter().zip(&starts).filter(|of| is_lost(*of)).count());
        }
        assert!(worst > 0 && worst <= 2 * BLOCK_BYTES / 300 + 2, "{worst} of {} documents", texts.len());
    }
}
