//! PGM and PPM: grey and colour pictures, as text or bytes.

use super::{ImageShape, Picture, Pixels};

/// Whether a file that starts so is one.
pub(super) fn is_pnm(start: &[u8]) -> bool {
    matches!(start, [b'P', b'2' | b'3' | b'5' | b'6', after, ..] if after.is_ascii_whitespace())
}

/// Reads a picture; an error says what is wrong with it.
pub(super) fn decode(bytes: &[u8]) -> Result<Picture, String> {
    let kind = bytes[1];
    let mut at = 2;
    let mut number = |what: &str| -> Result<usize, String> {
        loop {
            match bytes.get(at) {
                Some(b'#') => {
                    at += bytes[at..].iter().position(|&b| b == b'\n').unwrap_or(bytes.len() - at)
                }
                Some(byte) if byte.is_ascii_whitespace() => at += 1,
                _ => break,
            }
        }
        let digits =
            bytes[at.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(&bytes[at.min(bytes.len())..][..digits]).unwrap_or_default();
        at += digits;
        if at >= bytes.len() && digits == 0 {
            return Err(format!("ends within its {what}"));
        }
        text.parse().map_err(|_| format!("its {what}: there is something else than a number"))
    };
    let (width, height, most) = (number("width")?, number("height")?, number("largest value")?);
    if !(1..=65_535).contains(&most) {
        return Err(format!("its largest value is {most}, not from 1 to 65535"));
    }
    let shape =
        ImageShape { height, width, channels: if matches!(kind, b'2' | b'5') { 1 } else { 3 } };
    let n = super::png::checked_len(shape)?;
    let values: Vec<usize> = if matches!(kind, b'2' | b'3') {
        // Each is at least a digit and a blank.
        if bytes.len() < n {
            return Err("ends within its pixels".to_owned());
        }
        (0..n).map(|_| number("pixels")).collect::<Result<_, _>>()?
    } else {
        let wide = most > 255;
        let rest = bytes.get(at + 1..).unwrap_or_default();
        let rest = rest.get(..n << u32::from(wide)).ok_or("ends within its pixels")?;
        if wide {
            rest.as_chunks::<2>().0.iter().map(|&pair| u16::from_be_bytes(pair).into()).collect()
        } else {
            rest.iter().map(|&byte| byte.into()).collect()
        }
    };
    if let Some(value) = values.iter().find(|&&value| value > most) {
        return Err(format!("a pixel is {value}, above its largest value {most}"));
    }
    let pixels = if most == 255 {
        Pixels::Bytes(values.into_iter().map(|value| value as u8).collect())
    } else {
        Pixels::Floats(values.into_iter().map(|value| value as f32 / most as f32).collect())
    };
    Ok(Picture { shape, pixels })
}
