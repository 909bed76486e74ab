//! Writing a file of the container.

use std::io::{self, Seek, SeekFrom, Write};

use xxhash_rust::xxh3::xxh3_64;

use super::layout::{BLOCK_BYTES, CHECKSUM_BYTES, FORMAT_VERSION, HEADER_BYTES, Header, block_range};

/// Bytes that are written at a time.
pub(super) const BUFFER_BYTES: usize = 16 * BLOCK_BYTES;

/// Writes a file of the container: the payload through [`Write`], the rest on [`finish`](Self::finish).
///
/// Dropped without `finish`, it leaves a file that no reader opens. The payload is buffered in 16 blocks, so the writer
/// below needs no buffer of its own; [`flush`](Write::flush) passes on no more than was.
#[derive(Debug)]
pub struct Writer<W: Write + Seek> {
    out: W,
    kind: [u8; 8],
    /// Where the header stands in `out`.
    start: u64,
    /// Whole blocks, but for the last, on their way into `out`.
    buffer: Vec<u8>,
    table: Vec<u8>,
    payload_bytes: u64,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts a file of this kind at the current position of `out`, with a header of zeros.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W, kind: [u8; 8]) -> io::Result<Self> {
        let start = out.stream_position()?;
        out.write_all(&[0; HEADER_BYTES])?;
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Ok(Self { out, kind, start, buffer, table: Vec::new(), payload_bytes: 0 })
    }

    /// Bytes of payload so far.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Writes the last block, the table and the header, and gives the writer back, flushed, at the end of the file.
    /// Making it durable (`fsync`) is the caller's part.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self, counts: [u64; 2]) -> io::Result<W> {
        self.write_buffer()?;
        self.out.write_all(&self.table)?;
        let header = Header {
            version: FORMAT_VERSION,
            kind: self.kind,
            counts,
            payload_bytes: self.payload_bytes,
            table_checksum: xxh3_64(&self.table),
        };
        self.out.seek(SeekFrom::Start(self.start))?;
        self.out.write_all(&header.encode())?;
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let mut rest = &self.buffer[..];
        while !rest.is_empty() {
            let block = block_range(self.table.len() / CHECKSUM_BYTES);
            let (bytes, behind) = rest.split_at(block.len().min(rest.len()));
            self.table.extend_from_slice(&xxh3_64(bytes).to_le_bytes());
            rest = behind;
        }
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write + Seek> Write for Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The buffer ends where a block ends.
        let room = BUFFER_BYTES - (HEADER_BYTES + self.payload_bytes as usize) % BUFFER_BYTES;
        let n_taken = bytes.len().min(room);
        self.buffer.extend_from_slice(&bytes[..n_taken]);
        self.payload_bytes += n_taken as u64;
        if n_taken == room {
            self.write_buffer()?;
        }
        Ok(n_taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
