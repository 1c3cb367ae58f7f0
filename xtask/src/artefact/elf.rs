//! Whether a program needs anything but the kernel.

use anyhow::{Context as _, Result, bail};

/// The type of the program header that names the dynamic loader.
const PT_INTERP: u32 = 3;

/// The dynamic loader that a program asks for; `None` for one that is static.
///
/// # Errors
/// When it is no program for 64 bits, lower byte first.
pub(super) fn loader(program: &[u8]) -> Result<Option<String>> {
    if program.get(..6) != Some(&[0x7f, b'E', b'L', b'F', 2, 1]) {
        bail!("no ELF program for 64 bits, lower byte first");
    }
    let (start, size, count) = (
        word(program, 32, 8)?,
        word(program, 54, 2)?,
        word(program, 56, 2)?,
    );
    for index in 0..count {
        let header = start + index * size;
        if u32::try_from(word(program, header, 4)?)? == PT_INTERP {
            let (offset, length) = (
                word(program, header + 8, 8)?,
                word(program, header + 32, 8)?,
            );
            let text = program.get(offset..offset + length);
            let text = String::from_utf8_lossy(text.context("a header points past the end")?);
            return Ok(Some(text.trim_end_matches('\0').to_owned()));
        }
    }
    Ok(None)
}

/// A number of so many bytes.
fn word(program: &[u8], at: usize, bytes: usize) -> Result<usize> {
    let bytes = program.get(at..at + bytes).context("it ends too early")?;
    let value = bytes
        .iter()
        .rev()
        .fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    Ok(usize::try_from(value)?)
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    #[test]
    fn this_test_has_a_loader_and_a_program_without_headers_has_none() {
        let own = fs::read(env::current_exe().unwrap()).unwrap();
        let loader = loader(&own).unwrap().unwrap();
        assert!(loader.contains("/ld-"), "{loader}");
        let mut none = own[..64].to_vec();
        none[56..58].fill(0);
        assert_eq!(super::loader(&none).unwrap(), None);
    }

    #[test]
    fn what_is_no_program_is_refused() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x01\x01"] {
            assert!(loader(bytes).is_err());
        }
        let own = fs::read(env::current_exe().unwrap()).unwrap();
        assert!(loader(&own[..100]).is_err());
    }
}
