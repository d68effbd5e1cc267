//! PNG (ISO/IEC 15948): every colour type and depth, interlaced or not.
//!
//! Grey pictures have one channel; palettes and colours have three. Transparency is left aside.

use super::{ImageShape, Picture, Pixels};
use std::io::{Read, Write};

/// How a PNG file begins.
pub(super) const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Pictures with more numbers are refused before any memory is asked for.
const MOST: usize = 1 << 30;

/// How many numbers a picture of this shape has.
pub(super) fn checked_len(shape: ImageShape) -> Result<usize, String> {
    let ImageShape { height, width, channels } = shape;
    let n = height.checked_mul(width).and_then(|n| n.checked_mul(channels));
    match n {
        Some(0) => Err(format!("is {height} × {width}: it has no pixels")),
        Some(n) if n <= MOST => Ok(n),
        _ => Err(format!("says that it is {height} × {width}: too large")),
    }
}

#[derive(Clone, Copy)]
struct Header {
    width: usize,
    height: usize,
    depth: usize,
    colour: u8,
    interlaced: bool,
}

impl Header {
    fn parse(data: &[u8]) -> Result<Self, String> {
        let &[w0, w1, w2, w3, h0, h1, h2, h3, depth, colour, 0, 0, interlace] = data else {
            return Err("its header is broken".to_owned());
        };
        let size = |bytes| u32::from_be_bytes(bytes) as usize;
        let fits = match colour {
            0 => matches!(depth, 1 | 2 | 4 | 8 | 16),
            3 => matches!(depth, 1 | 2 | 4 | 8),
            2 | 4 | 6 => matches!(depth, 8 | 16),
            _ => false,
        };
        if !fits || interlace > 1 {
            return Err(format!("has no known colour type: {colour} with {depth} bits"));
        }
        let (width, height) = (size([w0, w1, w2, w3]), size([h0, h1, h2, h3]));
        Ok(Self { width, height, depth: depth.into(), colour, interlaced: interlace == 1 })
    }

    /// The numbers of a pixel in the file.
    fn samples(self) -> usize {
        match self.colour {
            0 | 3 => 1,
            4 => 2,
            2 => 3,
            _ => 4,
        }
    }

    fn row_bytes(self, width: usize) -> usize {
        (width * self.samples() * self.depth).div_ceil(8)
    }

    /// The passes of the picture: first column and row, and the steps between them.
    fn passes(self) -> Vec<(usize, usize, usize, usize)> {
        if self.interlaced {
            let adam = [
                (0, 0, 8, 8),
                (4, 0, 8, 8),
                (0, 4, 4, 8),
                (2, 0, 4, 4),
                (0, 2, 2, 4),
                (1, 0, 2, 2),
                (0, 1, 1, 2),
            ];
            adam.to_vec()
        } else {
            vec![(0, 0, 1, 1)]
        }
    }
}

/// Reads a picture; an error says what is wrong with it.
pub(super) fn decode(bytes: &[u8]) -> Result<Picture, String> {
    let mut rest = bytes.get(SIGNATURE.len()..).unwrap_or_default();
    let (mut header, mut palette, mut packed) = (None, Vec::new(), Vec::new());
    loop {
        let (&length, after) = rest.split_first_chunk::<4>().ok_or("ends before its end mark")?;
        let length = u32::from_be_bytes(length) as usize;
        let chunk = after.get(..length.saturating_add(4)).ok_or("ends within a chunk")?;
        let (&sum, next) =
            after[chunk.len()..].split_first_chunk::<4>().ok_or("ends within a chunk")?;
        let mut crc = flate2::Crc::new();
        crc.update(chunk);
        if crc.sum() != u32::from_be_bytes(sum) {
            return Err("a checksum does not match: the file is damaged".to_owned());
        }
        let (kind, data) = chunk.split_at(4);
        match kind {
            b"IHDR" => header = Some(Header::parse(data)?),
            b"PLTE" => palette = data.as_chunks::<3>().0.to_vec(),
            b"IDAT" => packed.extend_from_slice(data),
            b"IEND" => break,
            _ => {}
        }
        rest = next;
    }
    let header = header.ok_or("has no header")?;
    let channels = if matches!(header.colour, 0 | 4) { 1 } else { 3 };
    let shape = ImageShape { height: header.height, width: header.width, channels };
    let n = checked_len(shape)?;
    let sizes: Vec<(usize, usize)> = header
        .passes()
        .iter()
        .map(|&(x, y, dx, dy)| {
            (
                header.width.saturating_sub(x).div_ceil(dx),
                header.height.saturating_sub(y).div_ceil(dy),
            )
        })
        .collect();
    let wanted: usize =
        sizes.iter().map(|&(w, h)| if w == 0 { 0 } else { h * (1 + header.row_bytes(w)) }).sum();
    let mut data = Vec::new();
    flate2::read::ZlibDecoder::new(packed.as_slice())
        .take(wanted as u64)
        .read_to_end(&mut data)
        .map_err(|error| format!("its pixels cannot be unpacked: {error}"))?;
    if data.len() < wanted {
        return Err("ends within its pixels".to_owned());
    }
    let mut values = vec![0u16; n];
    let mut rest = data.as_mut_slice();
    for (&(x, y, dx, dy), &(w, h)) in header.passes().iter().zip(&sizes) {
        if w == 0 {
            continue;
        }
        let length = header.row_bytes(w);
        let (pass, after) = std::mem::take(&mut rest).split_at_mut(h * (1 + length));
        rest = after;
        unfilter(pass, length, (header.samples() * header.depth).div_ceil(8))?;
        for (row, line) in pass.chunks_exact(1 + length).enumerate() {
            for column in 0..w {
                let at = ((y + row * dy) * header.width + x + column * dx) * channels;
                let out = &mut values[at..at + channels];
                pixel(&line[1..], column, header, &palette, out)?;
            }
        }
    }
    let pixels = if header.depth == 16 {
        Pixels::Floats(values.into_iter().map(|value| f32::from(value) / 65_535.0).collect())
    } else {
        Pixels::Bytes(values.into_iter().map(|value| value as u8).collect())
    };
    Ok(Picture { shape, pixels })
}

/// Writes a picture of bytes, grey (one channel) or red, green and blue.
pub(super) fn encode(shape: ImageShape, pixels: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut file = SIGNATURE.to_vec();
    let mut chunk = |kind: &[u8; 4], data: &[u8]| {
        file.extend((data.len() as u32).to_be_bytes());
        let mut crc = flate2::Crc::new();
        crc.update(kind);
        crc.update(data);
        file.extend(kind);
        file.extend(data);
        file.extend(crc.sum().to_be_bytes());
    };
    let colour = if shape.channels == 1 { 0 } else { 2 };
    let sizes = [shape.width, shape.height].map(|size| (size as u32).to_be_bytes());
    chunk(b"IHDR", &[&sizes[0][..], &sizes[1], &[8, colour, 0, 0, 0]].concat());
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    for row in pixels.chunks_exact((shape.width * shape.channels).max(1)) {
        // Rows without a filter: pictures of noise and of few shades are packed best as they are.
        packed.write_all(&[0])?;
        packed.write_all(row)?;
    }
    chunk(b"IDAT", &packed.finish()?);
    chunk(b"IEND", b"");
    Ok(file)
}

/// Undoes the filter of each row, in place.
fn unfilter(pass: &mut [u8], length: usize, step: usize) -> Result<(), String> {
    let mut above = vec![0u8; length];
    for row in pass.chunks_exact_mut(1 + length) {
        let (filter, line) = row.split_at_mut(1);
        for at in 0..length {
            let left = if at >= step { line[at - step] } else { 0 };
            let corner = if at >= step { above[at - step] } else { 0 };
            let guess = match filter[0] {
                0 => 0,
                1 => left,
                2 => above[at],
                3 => u8::midpoint(left, above[at]),
                4 => paeth(left, above[at], corner),
                other => return Err(format!("a row has the unknown filter {other}")),
            };
            line[at] = line[at].wrapping_add(guess);
        }
        above.copy_from_slice(line);
    }
    Ok(())
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(above), i16::from(corner));
    let (pa, pb, pc) = ((b - c).abs(), (a - c).abs(), (a + b - 2 * c).abs());
    if pa <= pb && pa <= pc {
        left
    } else if pb <= pc {
        above
    } else {
        corner
    }
}

/// The numbers of a pixel: of 8 bits, or of 16.
fn pixel(
    line: &[u8],
    column: usize,
    header: Header,
    palette: &[[u8; 3]],
    out: &mut [u16],
) -> Result<(), String> {
    let Header { depth, colour, .. } = header;
    let sample = |at: usize| -> u16 {
        let index = column * header.samples() + at;
        match depth {
            16 => u16::from_be_bytes([line[2 * index], line[2 * index + 1]]),
            8 => line[index].into(),
            _ => {
                let bit = index * depth;
                u16::from(line[bit / 8] >> (8 - depth - bit % 8)) & ((1 << depth) - 1)
            }
        }
    };
    if colour == 3 {
        let found = palette.get(usize::from(sample(0))).ok_or("a pixel is not in its palette")?;
        out.iter_mut().zip(found).for_each(|(out, &value)| *out = value.into());
        return Ok(());
    }
    for (at, out) in out.iter_mut().enumerate() {
        *out = sample(at);
        if depth < 8 {
            *out = *out * 255 / ((1 << depth) - 1);
        }
    }
    Ok(())
}
