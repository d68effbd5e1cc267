//! JPEG (ITU-T T.81): baseline and progressive, Huffman coded, 8 bits, grey or colour.
//!
//! Written here because no decoder is among the dependencies. Chroma of half the width, or of half the width and height, is
//! interpolated linearly, as libjpeg does by default; chroma of any other ratio is repeated. Pixels may differ from
//! libjpeg's by a few levels of 255, as rounding goes.

use super::{ImageShape, Picture, Pixels, png::checked_len};

/// How a JPEG file begins.
pub(super) const SIGNATURE: &[u8] = b"\xff\xd8\xff";

/// The positions of the coefficients of a block, in the order of the file.
#[rustfmt::skip]
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55,
    62, 63,
];

/// A Huffman code: of each length the first code, one past the last, and where its symbols begin.
#[derive(Clone, Default)]
struct Huffman {
    first: [i32; 17],
    end: [i32; 17],
    start: [usize; 17],
    symbols: Vec<u8>,
}

impl Huffman {
    fn new(counts: &[u8], symbols: &[u8]) -> Self {
        let mut huffman = Self { symbols: symbols.to_vec(), ..Self::default() };
        let (mut code, mut at) = (0i32, 0);
        for (length, &count) in (1..).zip(counts) {
            huffman.first[length] = code;
            huffman.start[length] = at;
            code += i32::from(count);
            at += usize::from(count);
            huffman.end[length] = code;
            code <<= 1;
        }
        huffman
    }
}

/// The bits of a scan.
struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    bits: u32,
    count: u32,
}

impl Bits<'_> {
    fn bit(&mut self) -> Result<i32, String> {
        if self.count == 0 {
            let byte = *self.data.get(self.at).ok_or(SHORT)?;
            self.at += 1;
            if byte == 0xff {
                // A marker in the middle of the pixels: there are no more of them.
                if self.data.get(self.at) != Some(&0) {
                    return Err(SHORT.to_owned());
                }
                self.at += 1;
            }
            self.bits = byte.into();
            self.count = 8;
        }
        self.count -= 1;
        Ok((self.bits >> self.count & 1) as i32)
    }

    fn take(&mut self, n: u8) -> Result<i32, String> {
        (0..n).try_fold(0, |value, _| Ok(value << 1 | self.bit()?))
    }

    /// A number of `n` bits with its sign.
    fn signed(&mut self, n: u8) -> Result<i32, String> {
        if n == 0 {
            return Ok(0);
        }
        let value = self.take(n)?;
        Ok(if value < 1 << (n - 1) { value - (1 << n) + 1 } else { value })
    }

    fn symbol(&mut self, huffman: &Huffman) -> Result<u8, String> {
        let mut code = 0;
        for length in 1..=16 {
            code = code << 1 | self.bit()?;
            if code < huffman.end[length] && code >= huffman.first[length] {
                let at = huffman.start[length] + (code - huffman.first[length]) as usize;
                return huffman.symbols.get(at).copied().ok_or_else(|| DAMAGED.to_owned());
            }
        }
        Err(DAMAGED.to_owned())
    }

    /// Goes past the restart marker that must come here.
    fn restart(&mut self) -> Result<(), String> {
        self.count = 0;
        match self.data.get(self.at..self.at + 2) {
            Some([0xff, 0xd0..=0xd7]) => {
                self.at += 2;
                Ok(())
            }
            _ => Err(DAMAGED.to_owned()),
        }
    }
}

const SHORT: &str = "ends within its pixels";
const DAMAGED: &str = "its pixels are damaged";

/// One colour of the picture.
struct Component {
    id: u8,
    /// Blocks of it in the unit that colours share, across and down.
    across: usize,
    down: usize,
    table: usize,
    /// Pixels of it across and down.
    width: usize,
    height: usize,
    /// Blocks across, as the units have them.
    stride: usize,
    coefficients: Vec<i16>,
    dc: i32,
}

/// The content of a scan: a band of coefficients, and the number of bits of each.
#[derive(Clone, Copy)]
struct Band {
    start: usize,
    end: usize,
    high: u8,
    low: u8,
}

#[derive(Default)]
struct Decoder {
    quantizers: Vec<[u16; 64]>,
    dc: [Huffman; 4],
    ac: [Huffman; 4],
    restart: usize,
    progressive: bool,
    width: usize,
    height: usize,
    components: Vec<Component>,
    most: (usize, usize),
    /// Whether the three colours are red, green and blue as they are.
    plain: bool,
    scans: usize,
}

/// Reads a picture; an error says what is wrong with it.
pub(super) fn decode(bytes: &[u8]) -> Result<Picture, String> {
    let mut decoder = Decoder { quantizers: vec![[1; 64]; 4], ..Decoder::default() };
    let mut at = 2;
    loop {
        let Some(&[0xff, marker]) = bytes.get(at..at + 2) else {
            return Err("ends before its end mark".to_owned());
        };
        if marker == 0xff {
            at += 1;
            continue;
        }
        at += 2;
        if marker == 0xd9 {
            break;
        }
        let length =
            bytes.get(at..at + 2).map(|two| usize::from(u16::from_be_bytes([two[0], two[1]])));
        let length = length.filter(|&length| length >= 2).ok_or("ends within a segment")?;
        let segment = bytes.get(at + 2..at + length).ok_or("ends within a segment")?;
        at += length;
        match marker {
            0xdb => decoder.quantizers(segment)?,
            0xc4 => decoder.huffman(segment)?,
            0xdd => match *segment {
                [high, low] => decoder.restart = u16::from_be_bytes([high, low]).into(),
                _ => return Err("a segment is broken".to_owned()),
            },
            0xee => decoder.plain = segment.starts_with(b"Adobe") && segment.get(11) == Some(&0),
            0xc0..=0xc2 => decoder.frame(segment, marker == 0xc2)?,
            0xc3 | 0xc5..=0xcf => {
                return Err(
                    "has a coding of JPEG that is not read (lossless, hierarchical or arithmetic)"
                        .to_owned(),
                );
            }
            0xda => at += decoder.scan(segment, &bytes[at..])?,
            _ => {}
        }
    }
    if decoder.scans == 0 {
        return Err("has no pixels".to_owned());
    }
    decoder.picture()
}

impl Decoder {
    fn quantizers(&mut self, mut segment: &[u8]) -> Result<(), String> {
        while let Some((&head, rest)) = segment.split_first() {
            let (wide, table) = (head >> 4 != 0, usize::from(head & 15));
            let size = if wide { 128 } else { 64 };
            let values =
                rest.get(..size).filter(|_| table < 4).ok_or("a table of quantisers is broken")?;
            for (at, &place) in ZIGZAG.iter().enumerate() {
                self.quantizers[table][place] = if wide {
                    u16::from_be_bytes([values[2 * at], values[2 * at + 1]])
                } else {
                    values[at].into()
                };
            }
            segment = &rest[size..];
        }
        Ok(())
    }

    fn huffman(&mut self, mut segment: &[u8]) -> Result<(), String> {
        const BROKEN: &str = "a Huffman table is broken";
        while let Some((&head, rest)) = segment.split_first() {
            let (class, table) = (head >> 4, usize::from(head & 15));
            let counts = rest.get(..16).filter(|_| table < 4 && class < 2).ok_or(BROKEN)?;
            let n: usize = counts.iter().map(|&count| usize::from(count)).sum();
            let symbols = rest.get(16..16 + n).filter(|_| n <= 256).ok_or(BROKEN)?;
            let tables = if class == 0 { &mut self.dc } else { &mut self.ac };
            tables[table] = Huffman::new(counts, symbols);
            segment = &rest[16 + n..];
        }
        Ok(())
    }

    fn frame(&mut self, segment: &[u8], progressive: bool) -> Result<(), String> {
        const BROKEN: &str = "its header is broken";
        let &[bits, h0, h1, w0, w1, n, ref rest @ ..] = segment else {
            return Err(BROKEN.to_owned());
        };
        if !self.components.is_empty() {
            return Err("has two headers".to_owned());
        }
        if bits != 8 {
            return Err(format!("has {bits} bits a colour; only 8 are read"));
        }
        if !matches!(n, 1 | 3) {
            return Err(format!("has {n} colours; grey (1) and colour (3) are read"));
        }
        self.height = u16::from_be_bytes([h0, h1]).into();
        self.width = u16::from_be_bytes([w0, w1]).into();
        self.progressive = progressive;
        checked_len(ImageShape { height: self.height, width: self.width, channels: n.into() })?;
        let parts = rest.as_chunks::<3>().0;
        let known = |part: &[u8; 3]| {
            (1..=4).contains(&(part[1] >> 4)) && (1..=4).contains(&(part[1] & 15)) && part[2] < 4
        };
        if parts.len() != usize::from(n) || !parts.iter().all(known) {
            return Err(BROKEN.to_owned());
        }
        let across = |part: &[u8; 3]| usize::from(part[1] >> 4);
        let down = |part: &[u8; 3]| usize::from(part[1] & 15);
        // The only colour of a picture is not sampled, whatever its header says.
        let one = n == 1;
        let most_across = if one { 1 } else { parts.iter().map(across).max().unwrap_or(1) };
        let most_down = if one { 1 } else { parts.iter().map(down).max().unwrap_or(1) };
        self.most = (most_across, most_down);
        let units = (self.width.div_ceil(8 * most_across), self.height.div_ceil(8 * most_down));
        for part in parts {
            let (across, down) = if one { (1, 1) } else { (across(part), down(part)) };
            let (stride, rows) = (units.0 * across, units.1 * down);
            self.components.push(Component {
                id: part[0],
                across,
                down,
                table: part[2].into(),
                width: (self.width * across).div_ceil(most_across),
                height: (self.height * down).div_ceil(most_down),
                stride,
                coefficients: vec![0; stride * rows * 64],
                dc: 0,
            });
        }
        Ok(())
    }

    /// Decodes a scan; gives the number of its bytes.
    fn scan(&mut self, segment: &[u8], data: &[u8]) -> Result<usize, String> {
        const BROKEN: &str = "the header of a scan is broken";
        let (&n, rest) = segment.split_first().ok_or(BROKEN)?;
        let n = usize::from(n);
        let (chosen, tail) = rest.split_at_checked(2 * n).ok_or(BROKEN)?;
        let &[start, end, approximation] = tail else { return Err(BROKEN.to_owned()) };
        let band = if self.progressive {
            Band {
                start: start.into(),
                end: end.into(),
                high: approximation >> 4,
                low: approximation & 15,
            }
        } else {
            Band { start: 0, end: 63, high: 0, low: 0 }
        };
        let in_order = band.start <= band.end && band.end < 64 && band.low < 14;
        let dc_alone = !self.progressive || (band.start == 0) == (band.end == 0);
        if !in_order || !dc_alone || n == 0 || (band.start > 0 && n > 1) {
            return Err(BROKEN.to_owned());
        }
        let mut parts: Vec<(usize, usize, usize)> = Vec::with_capacity(n);
        for &[id, tables] in chosen.as_chunks::<2>().0 {
            let at =
                self.components.iter().position(|component| component.id == id).ok_or(BROKEN)?;
            let (dc, ac) = (usize::from(tables >> 4), usize::from(tables & 15));
            if dc > 3 || ac > 3 || parts.iter().any(|&(other, ..)| other == at) {
                return Err(BROKEN.to_owned());
            }
            parts.push((at, dc, ac));
        }
        self.scans += 1;
        self.components.iter_mut().for_each(|component| component.dc = 0);
        let mut bits = Bits { data, at: 0, bits: 0, count: 0 };
        let units = if let [(at, ..)] = parts[..] {
            let one = &self.components[at];
            (one.width.div_ceil(8), one.height.div_ceil(8))
        } else {
            (self.width.div_ceil(8 * self.most.0), self.height.div_ceil(8 * self.most.1))
        };
        let mut run = 0;
        for unit in 0..units.0 * units.1 {
            if self.restart > 0 && unit > 0 && unit % self.restart == 0 {
                bits.restart()?;
                run = 0;
                self.components.iter_mut().for_each(|component| component.dc = 0);
            }
            let (x, y) = (unit % units.0, unit / units.0);
            for &(at, dc, ac) in &parts {
                let component = &mut self.components[at];
                let (across, down) =
                    if parts.len() == 1 { (1, 1) } else { (component.across, component.down) };
                for place in 0..across * down {
                    let (bx, by) = (x * across + place % across, y * down + place / across);
                    let block = (by * component.stride + bx) * 64;
                    let (tables, out) = (
                        (&self.dc[dc], &self.ac[ac]),
                        &mut component.coefficients[block..block + 64],
                    );
                    if self.progressive {
                        progressive(&mut bits, tables, band, &mut component.dc, &mut run, out)?;
                    } else {
                        baseline(&mut bits, tables, &mut component.dc, out)?;
                    }
                }
            }
        }
        Ok(bits.at)
    }

    fn picture(self) -> Result<Picture, String> {
        let n = self.components.len();
        let shape = ImageShape { height: self.height, width: self.width, channels: n };
        let planes: Vec<Vec<u8>> =
            self.components.iter().map(|component| self.plane(component)).collect();
        let mut pixels = vec![0u8; checked_len(shape)?];
        for (at, pixel) in pixels.chunks_exact_mut(n).enumerate() {
            if let [y, cb, cr] = planes.as_slice() {
                let (y, cb, cr) = (f32::from(y[at]), f32::from(cb[at]), f32::from(cr[at]));
                let (cb, cr) = (cb - 128.0, cr - 128.0);
                let colours = if self.plain {
                    [y, cb + 128.0, cr + 128.0]
                } else {
                    [y + 1.402 * cr, y - 0.344_136 * cb - 0.714_136 * cr, y + 1.772 * cb]
                };
                pixel
                    .iter_mut()
                    .zip(colours)
                    .for_each(|(out, value)| *out = (value + 0.5).clamp(0.0, 255.0) as u8);
            } else {
                pixel[0] = planes[0][at];
            }
        }
        Ok(Picture { shape, pixels: Pixels::Bytes(pixels) })
    }

    /// A colour at the size of the picture.
    fn plane(&self, component: &Component) -> Vec<u8> {
        let Component { width, height, stride, .. } = *component;
        let quantizers = &self.quantizers[component.table];
        let mut small = vec![0u8; width * height];
        for (at, block) in component.coefficients.chunks_exact(64).enumerate() {
            let (x, y) = (at % stride * 8, at / stride * 8);
            if x >= width || y >= height {
                continue;
            }
            let values = inverse(block, quantizers);
            for row in 0..8.min(height - y) {
                let n = 8.min(width - x);
                small[(y + row) * width + x..][..n].copy_from_slice(&values[row * 8..row * 8 + n]);
            }
        }
        let (across, down) = (self.most.0 / component.across, self.most.1 / component.down);
        if width == self.width && height == self.height {
            return small;
        }
        let exact =
            across * component.across == self.most.0 && down * component.down == self.most.1;
        if exact && across == 2 && down <= 2 {
            return doubled(&small, width, height, down == 2, (self.width, self.height));
        }
        (0..self.width * self.height)
            .map(|at| {
                let (x, y) = (at % self.width, at / self.width);
                let (x, y) = (x * component.across / self.most.0, y * component.down / self.most.1);
                small[y.min(height - 1) * width + x.min(width - 1)]
            })
            .collect()
    }
}

/// A plane twice as wide, and as high if `tall`, interpolated: nearer values weigh three times as much.
fn doubled(small: &[u8], width: usize, height: usize, tall: bool, size: (usize, usize)) -> Vec<u8> {
    let mut out = Vec::with_capacity(size.0 * size.1);
    for row in 0..size.1 {
        let (near, far) = if tall {
            let near = (row / 2).min(height - 1);
            (near, if row % 2 == 0 { near.saturating_sub(1) } else { (near + 1).min(height - 1) })
        } else {
            (row.min(height - 1), row.min(height - 1))
        };
        // Sums of weight 4.
        let column =
            |x: usize| 3 * u32::from(small[near * width + x]) + u32::from(small[far * width + x]);
        for x in 0..size.0 {
            let near = (x / 2).min(width - 1);
            let far = if x % 2 == 0 { near.saturating_sub(1) } else { (near + 1).min(width - 1) };
            // What is rounded up in one column is rounded down in the next, so that the mean stays.
            let half = match (x % 2 == 0, tall) {
                (true, true) => 8,
                (false, true) => 7,
                (true, false) => 4,
                (false, false) => 8,
            };
            out.push(((3 * column(near) + column(far) + half) >> 4) as u8);
        }
    }
    out
}

fn baseline(
    bits: &mut Bits<'_>,
    (dc, ac): (&Huffman, &Huffman),
    last: &mut i32,
    out: &mut [i16],
) -> Result<(), String> {
    let size = bits.symbol(dc)?;
    if size > 15 {
        return Err(DAMAGED.to_owned());
    }
    *last = last.wrapping_add(bits.signed(size)?);
    out[0] = *last as i16;
    let mut at = 1;
    while at < 64 {
        let symbol = bits.symbol(ac)?;
        let (zeros, size) = (usize::from(symbol >> 4), symbol & 15);
        if size == 0 {
            if zeros < 15 {
                break;
            }
            at += 16;
            continue;
        }
        at += zeros;
        let place = *ZIGZAG.get(at).ok_or(DAMAGED)?;
        out[place] = bits.signed(size)? as i16;
        at += 1;
    }
    Ok(())
}

/// A block of a progressive scan. `run` is the number of blocks after this one that have nothing more.
fn progressive(
    bits: &mut Bits<'_>,
    (dc, ac): (&Huffman, &Huffman),
    band: Band,
    last: &mut i32,
    run: &mut u32,
    out: &mut [i16],
) -> Result<(), String> {
    let bit = 1i16 << band.low;
    if band.start == 0 {
        if band.high == 0 {
            let size = bits.symbol(dc)?;
            if size > 15 {
                return Err(DAMAGED.to_owned());
            }
            *last = last.wrapping_add(bits.signed(size)?);
            out[0] = (*last << band.low) as i16;
        } else if bits.bit()? == 1 {
            out[0] |= bit;
        }
        return Ok(());
    }
    if band.high == 0 {
        if *run > 0 {
            *run -= 1;
            return Ok(());
        }
        let mut at = band.start;
        while at <= band.end {
            let symbol = bits.symbol(ac)?;
            let (zeros, size) = (symbol >> 4, symbol & 15);
            if size == 0 {
                if zeros < 15 {
                    *run = (1 << zeros) - 1 + bits.take(zeros)? as u32;
                    break;
                }
                at += 16;
                continue;
            }
            at += usize::from(zeros);
            let place = *ZIGZAG.get(at).ok_or(DAMAGED)?;
            out[place] = (bits.signed(size)? << band.low) as i16;
            at += 1;
        }
        return Ok(());
    }
    let refine = |bits: &mut Bits<'_>, value: &mut i16| -> Result<(), String> {
        if bits.bit()? == 1 && *value & bit == 0 {
            *value = value.wrapping_add(if *value > 0 { bit } else { -bit });
        }
        Ok(())
    };
    let mut at = band.start;
    if *run == 0 {
        while at <= band.end {
            let symbol = bits.symbol(ac)?;
            let (mut zeros, size) = (i32::from(symbol >> 4), symbol & 15);
            let mut new = 0;
            if size == 0 {
                if zeros < 15 {
                    *run = (1 << zeros) + bits.take(zeros as u8)? as u32;
                    break;
                }
            } else {
                new = if bits.bit()? == 1 { bit } else { -bit };
            }
            // The values that are there are refined on the way to the place of the new one.
            while at <= band.end {
                let value = &mut out[ZIGZAG[at]];
                if *value != 0 {
                    refine(bits, value)?;
                } else if zeros == 0 {
                    *value = new;
                    at += 1;
                    break;
                } else {
                    zeros -= 1;
                }
                at += 1;
            }
        }
    }
    if *run > 0 {
        for &place in &ZIGZAG[at..=band.end] {
            if out[place] != 0 {
                refine(bits, &mut out[place])?;
            }
        }
        *run -= 1;
    }
    Ok(())
}

/// The pixels of a block: the inverse cosine transform, by rows and by columns.
fn inverse(block: &[i16], quantizers: &[u16; 64]) -> [u8; 64] {
    // cos((2x + 1) u π / 16) / 2, and 1 / √8 for u = 0.
    static COSINES: std::sync::LazyLock<[[f32; 8]; 8]> = std::sync::LazyLock::new(|| {
        std::array::from_fn(|x| {
            std::array::from_fn(|u| {
                let scale = if u == 0 { 0.125f64.sqrt() } else { 0.5 };
                (scale * libm::cos((2 * x + 1) as f64 * u as f64 * std::f64::consts::PI / 16.0))
                    as f32
            })
        })
    });
    let cosines = &*COSINES;
    let mut rows = [0f32; 64];
    for v in 0..8 {
        let line: [f32; 8] =
            std::array::from_fn(|u| f32::from(block[v * 8 + u]) * f32::from(quantizers[v * 8 + u]));
        for x in 0..8 {
            rows[v * 8 + x] = line.iter().zip(&cosines[x]).map(|(a, b)| a * b).sum();
        }
    }
    std::array::from_fn(|at| {
        let (y, x) = (at / 8, at % 8);
        let value: f32 = (0..8).map(|v| rows[v * 8 + x] * cosines[y][v]).sum();
        (value + 128.5).clamp(0.0, 255.0) as u8
    })
}
